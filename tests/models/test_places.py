"""Logits within a sequence: those of the sequence that ends there, from every model and with the same gradients."""

import pytest
import torch

from orch import models, tasks
from orch.models.kernel import PLAIN
from orch.models.network import Network
from orch.tasks.sampling import Sampler
from tests.models.test_contracts import make
from tests.small import MODELS

VARIANTS = [
    *(({"name": name}, PLAIN) for name in MODELS),
    *(
        ({"name": name}, models.REGISTRY[name].places_kernel)
        for name in MODELS
        if models.REGISTRY[name].places_kernel != PLAIN
    ),
    ({"name": "bilinear", "additive": "input+constant", "train_normalisation": "rms-final"}, PLAIN),
    ({"name": "block_diagonal", "block_size": 8, "train_normalisation": "block-final"}, PLAIN),
    ({"name": "factored", "rank": 64}, PLAIN),
    ({"name": "lstm", "width": 48}, PLAIN),
    ({"name": "mamba", "negative_eigenvalues": True}, PLAIN),
]


def named(variant: tuple[dict[str, object], str]) -> str:
    return "-".join(map(str, [*variant[0].values(), variant[1]]))


@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_logits_and_gradients_within_a_sequence_are_those_of_its_beginnings(variant):
    settings, kernel = dict(variant[0]), variant[1]
    task = tasks.REGISTRY["modular_arithmetic"](modulus=3)
    network: Network = make(settings.pop("name"), task, seeds=(0, 1), **settings)
    network.kernel = kernel
    if kernel == PLAIN:
        network.double()
    sampler = Sampler(task)
    drawn = [sampler.label(sampler.draw(sampler.generator(trial), 4, 2, 6), 2) for trial in range(2)]
    tokens_KBT, end_KBP, _ = (torch.stack(part) for part in zip(*drawn, strict=True))
    # Every beginning as a sample of its own.
    cut_KBPT = torch.where(
        torch.arange(tokens_KBT.shape[2]) <= end_KBP[..., None], tokens_KBT[:, :, None], task.num_readable
    )
    beginnings = cut_KBPT.flatten(1, 2), end_KBP.flatten(1)
    weights_KN = torch.rand(end_KBP.flatten(1).shape, generator=torch.Generator().manual_seed(0))
    found, expected = [], []
    for asked, kept in (((tokens_KBT, end_KBP), found), (beginnings, expected)):
        logits = network(*asked)
        losses = torch.logsumexp(logits, -1) * weights_KN
        kept += [logits, *torch.autograd.grad(losses.sum(), [network[name] for name in network.trained_names])]
        with torch.no_grad():
            kept.append(network.eval()(*asked))
        network.train()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6 if kernel == PLAIN else 2e-4, atol=2e-6)
