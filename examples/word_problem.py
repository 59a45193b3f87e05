"""Word problems over the groups S3 and A5: a DeltaNet with eigenvalues in [0, 1] or [-1, 1] beside built-in models.

A model reads elements of a group, one after the other, and predicts their product. The inputs of S3 are the three swaps
of two things, those of A5 the twenty cycles of three. A transition of DeltaNet is a swap (a reflection) if it has an
eigenvalue of -1; with eigenvalues in [0, 1] it can only keep or forget (Grazzi et al., 2025).

    orch sweep examples/word_problem.py --where task=s3

The same study as a notebook is examples/word_problem.ipynb.
"""

from itertools import permutations

import torch
from torch import nn

import orch

S3 = list(permutations(range(3)))
S5 = list(permutations(range(5)))
A5 = [p for p in S5 if sum(a > b for i, b in enumerate(p) for a in p[:i]) % 2 == 0]
SWAPS = [p for p in S3 if sum(p[i] != i for i in range(3)) == 2]
CYCLES = [p for p in A5 if sum(p[i] != i for i in range(5)) == 3]


def times(group, state, element):
    """Return the number of the product of a group's element, given by its number, and another element."""
    return group.index(tuple(element[i] for i in group[state]))


@orch.task(inputs=len(SWAPS), states=len(S3))
def s3(state, symbol):
    return times(S3, state, SWAPS[symbol])


@orch.task(inputs=len(CYCLES), states=len(A5))
def a5(state, symbol):
    return times(A5, state, CYCLES[symbol])


class PlainDelta(nn.Module):
    """S' = S (I - beta k k^T) + beta v k^T in every head, with |k| = 1, so that 1 - beta is an eigenvalue.

    Schlag et al., 2021; Yang et al., 2024. Shapes: B samples, T tokens, V vocabulary, H heads, D width of a head.
    """

    def __init__(self, vocabulary, width=64, heads=4, negative=True):
        super().__init__()
        self.heads, self.largest = heads, 2.0 if negative else 1.0
        self.embedding = nn.Embedding(vocabulary, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.beta = nn.Linear(width, heads)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens_BT):
        x_BTW = self.embedding(tokens_BT)
        q, k, v = (map_(x_BTW).unflatten(-1, (self.heads, -1)) for map_ in (self.query, self.key, self.value))
        q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        beta = self.largest * torch.sigmoid(self.beta(x_BTW)).unsqueeze(-1)
        S_BHDD = torch.zeros(*v[:, 0].shape, v.shape[-1], device=v.device)
        outputs = []
        for q_BHD, k_BHD, v_BHD, beta_BH1 in zip(q.unbind(1), k.unbind(1), v.unbind(1), beta.unbind(1), strict=True):
            read_BHD = torch.einsum("bhij,bhj->bhi", S_BHDD, k_BHD)
            S_BHDD = S_BHDD + torch.einsum("bhi,bhj->bhij", beta_BH1 * (v_BHD - read_BHD), k_BHD)
            outputs.append(torch.einsum("bhij,bhj->bhi", S_BHDD, q_BHD))
        return self.head(self.norm(torch.stack(outputs, 1).flatten(2) + x_BTW))


Delta = orch.model(PlainDelta)

cells = orch.grid(
    models=[Delta(negative=False), Delta(negative=True), "lstm", {"name": "block_diagonal", "block_size": 8}],
    tasks=[s3, a5],
    learning_rates=(3e-3, 1e-3),
    seeds=3,
    test_length=100,
)
