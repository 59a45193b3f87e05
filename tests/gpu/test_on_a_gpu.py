"""Tests for a machine with a GPU, where nothing needs to be pretended."""

import pytest
import torch

from orch.running import doctor
from tests.small import MODELS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@pytest.mark.parametrize("model", MODELS)
def test_recorded_steps_have_the_losses_of_ordinary_ones(model):
    assert "losses" in doctor.check_recording(model, "cuda")
