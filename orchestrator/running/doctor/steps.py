"""Comparisons of training steps from equal states: in a pack and alone, resumed, and recorded."""

from collections.abc import Sequence

import torch

from orch.models.wrapped_module import State
from orch.running.doctor.agreement import Agreement
from orch.running.doctor.double_precision import references
from orch.running.doctor.examined_trials import pack_of
from orch.running.doctor.finding import Failed, Skipped
from orch.running.doctor.rounding import Rounding
from orch.running.doctor.taken_step import TakenStep, take_step
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial
from orch.training.capture import NUM_WARM_UP_STEPS, find_recorder, one_operation_at_a_time
from orch.training.checkpoints import parse_snapshot, snapshot_bytes
from orch.training.host_copy import HostCopy
from orch.training.snapshot import Snapshot
from orch.training.train import Training

NUM_TRIALS = 2
STEPS = (0, 1, 2, 40, 41)
"""Steps of a small pack that are compared."""
FEWER_STEPS = (1,)


def compare_pack(trials_and_steps: Sequence[tuple[Trial, Sequence[int]]], device: str) -> str:
    """Compare steps of packs with those of each trial alone, and Adam's updates with double precision."""
    comparison = _Comparison()
    with one_operation_at_a_time():
        for trial, steps in trials_and_steps:
            pack = Training(pack_of(trial, NUM_TRIALS), device)
            for step in steps:
                pack.advance(stop_at=step)
                roundings = _roundings(pack)
                for taken, rounding in zip(take_step(pack), roundings, strict=True):
                    (alone,) = take_step(Training.resume([taken.before], device))
                    comparison.add(taken, alone, rounding)
    return f"losses and gradients {comparison.verdict('each trial alone', 'use --pack 1 on this device')}"


def compare_resumed(trial: Trial, device: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> str:
    """Compare a pack that was saved as bytes and resumed with the uninterrupted one: its state, and the next step."""
    comparison = _Comparison()
    with one_operation_at_a_time():
        pack = Training(pack_of(trial, NUM_TRIALS), device)
        pack.advance(stop_at=5)
        interrupted, roundings = _snapshots(pack), _roundings(pack)
        copied = HostCopy().take([pack.view(position) for position in range(NUM_TRIALS)])
        next_steps = take_step(pack)  # as a worker trains on while its checkpoint is written
        saved = [snapshot_bytes(snapshot) for snapshot in copied.wait()]
        resumed = Training.resume([parse_snapshot(data, "a checkpoint", definitions) for data in saved], device)
        for before, after in zip(interrupted, _snapshots(resumed), strict=True):
            for what in ("parameters", "first", "second"):
                if not _same_bits(getattr(before, what), getattr(after, what)):
                    kind = "weights" if what == "parameters" else f"{what} moments"
                    raise Failed(f"the {kind} of a resumed trial are not those that were saved: do not resume here")
            if (before.trial, before.step, before.kernel) != (after.trial, after.step, after.kernel):
                raise Failed("a resumed trial has another step, kernel or settings: do not resume here")
        for each in zip(take_step(resumed), next_steps, roundings, strict=True):
            comparison.add(*each)
    found = comparison.verdict("an uninterrupted pack", "do not resume here")
    return f"weights and moments bit for bit; the next losses and gradients {found}"


def compare_recorded(trial: Trial, device: str) -> str:
    """Compare steps that are recorded and replayed with steps one operation at a time, from equal states."""
    if find_recorder(torch.device(device)) is None:
        raise Skipped("ORCH_CAPTURE is off")
    if not trial.model.network().replayable:
        raise Skipped("a user's module runs one operation at a time")
    comparison = _Comparison()
    pack = Training(pack_of(trial, NUM_TRIALS), device)
    recorded = range(NUM_WARM_UP_STEPS, NUM_WARM_UP_STEPS + 4)
    for step in (0, 1, *recorded, 63, 64, 65):  # the data of 64 steps lie together
        pack.advance(stop_at=step)
        with one_operation_at_a_time():
            ordinary = Training.resume(_snapshots(pack), device)
        roundings = _roundings(pack)
        for each in zip(take_step(pack), take_step(ordinary), roundings, strict=True):
            comparison.add(*each)
    if pack.warnings:
        raise Failed("; ".join(pack.warnings))
    return f"losses and gradients {comparison.verdict('ordinary steps', 'set ORCH_CAPTURE=off for the workers')}"


class _Comparison:
    """Compares steps that were taken from equal states, and how each updated its weights."""

    def __init__(self) -> None:
        self._steps, self._updates = Agreement(), Agreement()

    def add(self, found: TakenStep, expected: TakenStep, rounding: Rounding) -> None:
        """Compare two steps, given what rounding explains in the gradients."""
        when = f"in step {found.after.step} at width {found.after.trial.model.width}"
        self._steps.compare(when, found.computed, expected.computed, rounding.with_moments(found.after.first))
        found.compare_update(self._updates)

    def verdict(self, other: str, remedy: str) -> str:
        """Return how far the steps are apart, or raise `Failed`."""
        self._updates.verdict("double precision")
        return self._steps.verdict(other, remedy)


def _roundings(training: Training) -> list[Rounding]:
    """Return what rounding explains in the gradients of each trial's coming step."""
    return [each.rounding for each in references(training.network, training.next_batch())]


def _same_bits(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name].cpu(), other[name].cpu()) for name in one)


def _snapshots(training: Training) -> list[Snapshot]:
    return [training.snapshot(position) for position in range(len(training.members))]
