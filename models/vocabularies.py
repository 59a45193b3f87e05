"""The vocabularies of stacked trials. Padding gives all of them one shape, and takes no part in any trial's numbers.

What has one row per token (embeddings, heads, token tables) is padded with rows of zeros behind each trial's own. No
token points to them and no logit is read off them, so their gradients are zero and Adam leaves them as they are.

A product over more rows, or a softmax over more logits, would round differently. So on a CPU such operations treat the
trials of one vocabulary after those of another, on views without padding: each trial's arithmetic is what it is alone.
On a GPU, where launches count and a stack rounds differently anyway, one operation serves all, with masked logits.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from orch.models.config import Vocabulary
from orch.models.recurrence.token_lookup import on_host


class Vocabularies:
    """The vocabulary of each trial of a stack. Trials with the same one should be neighbours: they share operations."""

    def __init__(self, each: Sequence[Vocabulary]):
        self.each = tuple(each)
        self.padded = Vocabulary(max(its.size for its in self.each), max(its.readable for its in self.each))
        """The vocabulary that has room for every trial's."""
        groups = [(vocabulary, len(list(trials))) for vocabulary, trials in itertools.groupby(self.each)]
        self._kinds, self._counts = [kind for kind, _ in groups], [count for _, count in groups]
        self.mixed = len(groups) > 1

    def mask(self) -> Tensor | None:
        """Return what to add to padded logits, (K, 1, V): minus infinity for padding. None if there is no padding."""
        if not self.mixed:
            return None
        size_K = torch.tensor([its.size for its in self.each])
        hidden_KV = torch.arange(self.padded.size) >= size_K[:, None]
        return torch.zeros(hidden_KV.shape).masked_fill(hidden_KV, -torch.inf)[:, None]

    def by_token(self, function: Callable[..., Tensor], x_KRD: Tensor, *stacks: Tensor, unread: bool = False) -> Tensor:
        """Return `function(x, …)`, which has a row for every readable token of a trial: (K, R, …).

        With `unread`, `x` and the result have a row for every token.
        """
        if not self._separate(x_KRD):
            return function(x_KRD, *stacks)
        rows = 0 if unread else 1
        tables = [function(x[:, : kind[rows]], *rest) for kind, x, *rest in self.split(x_KRD, *stacks)]
        return torch.cat([with_rows(table, self.padded[rows]) for table in tables])

    def over_tokens(self, function: Callable[..., Tensor], *tables: Tensor) -> Tensor:
        """Return `function(tables)`, which sums over the readable tokens of a trial."""
        if not self._separate(tables[0]):
            return function(*tables)
        return torch.cat(
            [function(*(table[:, : kind.readable] for table in own)) for kind, *own in self.split(*tables)]
        )

    def logits(self, function: Callable[..., Tensor], mask: Tensor | None, h_KBH: Tensor, *weights: Tensor) -> Tensor:
        """Return `function(h, weights)`, a logit for every token: (K, B, V). That of padding is minus infinity."""
        if not self._separate(h_KBH):
            logits_KBV = function(h_KBH, *weights)
            return logits_KBV if mask is None else logits_KBV + mask
        parts = []
        for kind, h, *own in self.split(h_KBH, *weights):
            logits = function(h, *(weight[:, : kind.size] for weight in own))
            parts.append(pad(logits, (0, self.padded.size - kind.size), value=-torch.inf))
        return torch.cat(parts)

    def over_vocabulary(self, function: Callable[..., Tensor], logits_KBV: Tensor, *stacks: Tensor) -> Tensor:
        """Return `function(logits, …)`, which reduces the logits of each sample, such as a loss."""
        if not self._separate(logits_KBV):
            return function(logits_KBV, *stacks)
        return torch.cat(
            [function(logits[..., : kind.size], *rest) for kind, logits, *rest in self.split(logits_KBV, *stacks)]
        )

    def split(self, *stacks: Tensor) -> Iterator[tuple[Any, ...]]:
        """Yield each vocabulary with the parts of the stacks that belong to its trials."""
        # `split` has one gradient for a whole stack; slices would each fill one of the stack's size.
        return zip(self._kinds, *(torch.split(stack, self._counts) for stack in stacks), strict=True)

    def _separate(self, x: Tensor) -> bool:
        return self.mixed and on_host(x)


def stack_padded(tensors: Sequence[Tensor]) -> Tensor:
    """Stack tensors whose first axes may differ, with zeros behind the shorter ones."""
    most = max(len(tensor) for tensor in tensors) if tensors[0].dim() else 0
    return torch.stack([with_rows(tensor[None], most)[0] if tensor.dim() else tensor for tensor in tensors])


def with_rows(table_KR: Tensor, num_rows: int) -> Tensor:
    """Append rows of zeros to axis 1."""
    missing = num_rows - table_KR.shape[1]
    return pad(table_KR, (0, 0) * (table_KR.dim() - 2) + (0, missing)) if missing else table_KR
