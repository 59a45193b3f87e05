"""A training step that can be recorded once and replayed, because its inputs and outputs stay where they are.

The batches of a block of steps lie in one tensor on the device. A counter on the device says which of them is next, and
another one where its losses go. So a step reads nothing from the host and returns nothing to it, and the next step is
the same operations again. The host writes to the device only between steps: a new block, and the counters with it.

Shapes: S steps of a block, X rows (the tokens, the end and the target, or several of both), K trials, B samples.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from orch.training.capture import RecordedStep, Recorder
from orch.training.data import Block, TrainingData

Update = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Updates the parameters on a batch: tokens (K, B, T), end (K, B) and target (K, B). Returns the losses, (K)."""


@dataclass
class _Program:
    """The step for batches of one size, and where it finds them."""

    samples_SXKB: Tensor
    step: RecordedStep


class StaticSteps:
    """The training steps of a stack of trials, recorded once for each size of batch."""

    def __init__(self, update: Update, data: TrainingData, losses_KS: Tensor, recorder: Recorder, warnings: list[str]):
        """Write the losses of step s into column s of `losses_KS`, modulo the number of columns.

        A step that cannot be recorded adds a warning to `warnings`.
        """
        self._update, self._data, self._losses_KS = update, data, losses_KS
        self._recorder, self._warnings = recorder, warnings
        self._counters = torch.zeros(2, dtype=torch.int64, device=losses_KS.device)
        self._place, self._column = self._counters
        self._programs: dict[torch.Size, _Program] = {}
        self._program: _Program | None = None
        self._end_of_block = 0

    def take(self, step: int) -> None:
        """Take this training step. Steps are taken in their order, from any first one."""
        if self._program is None or step == self._end_of_block:
            self._program = self._load(step)
        elif step % self._losses_KS.shape[1] == 0:
            self._column.zero_()
        self._program.step()

    def _load(self, step: int) -> _Program:
        """Put the block of this step and the counters in their places."""
        block = self._data.block(step)
        S, K, B, T = block.tokens_SKBT.shape
        if block.tokens_SKBT.shape not in self._programs:
            places = block.end_SKB.shape[3:]
            samples_SXKB = block.tokens_SKBT.new_empty(S, T + 2 * math.prod(places), K, B)
            # Not a method: a cycle of references would keep a graph's memory until Python looks for cycles.
            shapes = (T, K, B), (*places, K, B)
            take = functools.partial(_take_step, self._update, samples_SXKB, shapes, self._counters, self._losses_KS)
            step_of_block = RecordedStep(take, self._recorder, self._warnings)
            self._programs[block.tokens_SKBT.shape] = _Program(samples_SXKB, step_of_block)
        program = self._programs[block.tokens_SKBT.shape]
        _copy_block(block, program.samples_SXKB)
        self._place.fill_(step - block.first)
        self._column.fill_(step % self._losses_KS.shape[1])
        self._end_of_block = block.first + S
        return program


def _take_step(
    update: Update,
    samples_SXKB: Tensor,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    counters: Tensor,
    losses_KS: Tensor,
) -> None:
    """Take the step that the counters point to, and advance them.

    `shapes` are those of the tokens and of the ends and targets of a step, as they are stored.
    """
    place, column = counters[:1], counters[1:]
    samples_XKB = samples_SXKB.index_select(0, place)[0]
    # Time comes first in memory, as recurrences read it; the end and the target are contiguous.
    (T, *_), of_places = shapes
    tokens_KBT = samples_XKB[:T].permute(1, 2, 0)
    end, target = (_places_last(part.view(of_places)) for part in samples_XKB[T:].chunk(2))
    loss_K = update(tokens_KBT, end, target)
    losses_KS.index_copy_(1, column, loss_K[:, None])
    counters.add_(1)


def _places_last(part: Tensor) -> Tensor:
    """Return ends or targets as a network takes them: (K, B) as they are, (P, K, B) as (K, B, P)."""
    return part if part.dim() == 2 else part.permute(1, 2, 0)


def _copy_block(block: Block, samples_SXKB: Tensor) -> None:
    S, K, B, T = block.tokens_SKBT.shape
    samples_SXKB[:, :T].copy_(block.tokens_SKBT.permute(0, 3, 1, 2))
    for rows_SPKB, part in zip(samples_SXKB[:, T:].chunk(2, dim=1), (block.end_SKB, block.target_SKB), strict=True):
        rows_SPKB.copy_(part.view(S, K, B, -1).permute(0, 3, 1, 2))
