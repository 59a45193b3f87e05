"""Tests for a machine with a GPU, where nothing needs to be pretended."""

import pytest
import torch

from orch.running.doctor import gradients, steps
from orch.running.doctor.examined_trials import published, small
from tests.small import TYPICAL_MODELS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_losses_and_gradients_are_those_of_double_precision(model):
    trials = [(small(model), gradients.STEPS), (published(model), gradients.FEWER_STEPS)]
    assert "double precision" in gradients.compare_with_double(trials, "cuda")


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_recorded_steps_have_the_losses_and_gradients_of_ordinary_ones(model):
    assert "ordinary steps" in steps.compare_recorded(small(model), "cuda")
