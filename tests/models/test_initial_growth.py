"""States that are not normalised grow or shrink, before training, as the arithmetic of the settings says."""

import pytest
import torch

from orch import models, tasks
from orch.models import Vocabulary
from orch.models.network import build

CASES = [
    ("bilinear", {}),
    ("bilinear", {"embedding_scale": 1.0}),
    ("block_diagonal", {"block_size": 1}),
    ("block_diagonal", {"block_size": 8, "embedding_scale": 1.0}),
    ("rotation", {}),
    ("factored", {"rank": 64, "init_scale": 0.1}),
]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_state_grows_by_the_factor_that_arithmetic_predicts(name, settings):
    config = models.REGISTRY[name](width=128, train_normalisation="none", eval_normalisation="none", **settings)
    task = tasks.REGISTRY["modular_addition"](modulus=50)
    network = build(config, Vocabulary(task.vocabulary, task.num_readable), [torch.Generator().manual_seed(0)])
    tokens = torch.arange(50).view(1, 50, 1)  # every symbol once, for one step from the same state
    before = network["initial_state"].norm()
    with torch.no_grad():
        x_KRD = network["embedding"][:, : task.num_readable]
        after = network.scan(x_KRD, tokens, network._normalisation()[0], None)
    # The root of the mean square over tokens: the expectation is of squares.
    growth = (after.square().sum(-1).mean().sqrt() / before).item()
    assert growth == pytest.approx(config.initial_growth, rel=0.1)
