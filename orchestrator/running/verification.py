"""Verification: trials of a store trained again on this CPU, and compared with what was stored, bit for bit."""

import math
import os
import platform
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from orch.core.errors import OrchError
from orch.models.kernel import COMPILED, PLAIN, VARIABLE, is_compiled
from orch.running.provenance import packages
from orch.store import Store, curve_rows, trial_row
from orch.store.merging import can_be_checked
from orch.store.trial_rows import parse_packages
from orch.sweeps.trial import Trial, parse_config

COMPARED = ("stop_reason", "steps_trained", "train_loss", "validation_loss", "validation_accuracy", "ood_accuracy")
CURVE_COMPARED = ("train_loss", "validation_loss", "validation_accuracy")
VERSIONS = ("torch", "numpy", "numba", "transformers")
"""Packages whose other versions may round differently."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A trial that was trained again."""

    trial: Trial
    differing: tuple[str, ...]
    """What differs in the result, such as `ood_accuracy: 0.5 stored, 0.25 here`; empty if all bits are equal."""
    reasons: tuple[str, ...]
    """What differs in how it was made and may change the rounding: the kernel, threads or versions of packages."""

    @property
    def refuted(self) -> bool:
        """True if the result differs although it was made in the same way."""
        return bool(self.differing) and not self.reasons

    def __str__(self) -> str:
        if not self.differing:
            return "equal to the last bit"
        found = "; ".join(self.differing)
        if self.reasons:
            return f"differs, which another {', '.join(self.reasons)} may explain: {found}"
        return f"DIFFERS, made with the same kernel and versions: {found}"


def choose(rows: Sequence[Mapping[str, Any]], number: int, seed: int) -> list[Mapping[str, Any]]:
    """Choose trials at random among those that this machine can train again: built-in code, trained on a CPU."""
    known = [row for row in rows if row["device"] == "cpu" and can_be_checked(dict(row), parse_config(row["config"]))]
    if not known:
        raise OrchError("no trial can be verified: none has built-in code of today's revision and was trained on a CPU")
    ordered = sorted(known, key=lambda row: str(row["trial_id"]))
    return random.Random(seed).sample(ordered, min(number, len(ordered)))


def verify(store: Store, number: int, seed: int) -> Iterator[Verified]:
    """Train trials of a store again, one after the other, and yield how each compares."""
    trials = store.read("trials").to_pylist()
    curves = store.read("curves")
    for row in choose(trials, number, seed):
        yield verify_trial(row, curves.filter(_mask(curves, row["trial_id"])).to_pylist())


def verify_trial(row: Mapping[str, Any], curve: Sequence[Mapping[str, Any]]) -> Verified:
    """Train one trial again, with as many threads as it had, and compare its row and its curve."""
    import torch

    from orch.training.train import Training

    trial = Trial.from_dict(parse_config(row["config"]))
    before = torch.get_num_threads()
    torch.set_num_threads(row["threads"] or 1)
    try:
        with _kernel_like(row["kernel"]):
            training = Training([trial], "cpu")
        while not training.finished:
            training.advance()
    finally:
        torch.set_num_threads(before)
    result = training.results[0]
    again = trial_row(result, {"attempt_id": "verification"})
    differing = [
        f"{name}: {row[name]} stored, {again[name]} here" for name in COMPARED if not _equal(row[name], again[name])
    ]
    stored = {point["length"]: point["accuracy"] for point in row["length_curve"] or ()}
    differing += [
        f"accuracy at {length} inputs: {stored[length]} stored, {accuracy} here"
        for length, accuracy in result.test_accuracy.items()
        if length in stored and not _equal(stored[length], accuracy)
    ]
    differing += _curve_differences(curve, {each["step"]: each for each in curve_rows(result, "verification")})
    return Verified(trial, tuple(differing), tuple(_reasons(row, training.kernel)))


@contextmanager
def _kernel_like(recorded: str | None) -> Iterator[None]:
    """Let new trials begin with the kind of kernel that was recorded; before kernels were, all were plain."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = COMPILED if recorded is not None and is_compiled(recorded) else PLAIN
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def _curve_differences(stored: Sequence[Mapping[str, Any]], again: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Return the first step at which the curves differ. A stored curve may have fewer points, as in a bundle."""
    for point in sorted(stored, key=lambda point: int(point["step"])):
        here = again.get(point["step"])
        for name in CURVE_COMPARED:
            if here is None or not _equal(point[name], here[name]):
                value = "nothing" if here is None else here[name]
                return [f"{name} from step {point['step']}: {point[name]} stored, {value} here"]
    return []


def _reasons(row: Mapping[str, Any], kernel: str) -> Iterator[str]:
    """Yield what was different when the stored result was made."""
    if row["kernel"] != kernel:
        yield f"kernel ({row['kernel'] or 'not recorded'}, {kernel} here)"
    then, now = parse_packages(row["packages"]), parse_packages(packages())
    for name in VERSIONS:
        if then.get(name) != now.get(name) and (name in then or not then):
            yield f"{name} ({then.get(name, 'not recorded')}, {now.get(name, 'none')} here)"


def this_machine() -> str:
    """Return the words for the processor that verifies."""
    return f"{platform.machine()} CPU"


def _mask(curves: Any, trial_id: str) -> Any:
    import pyarrow.compute as pc

    return pc.equal(curves["trial_id"], trial_id)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same bits; what is not a number equals what was not measured."""
    if isinstance(one, float) and math.isnan(one):
        one = None
    if isinstance(other, float) and math.isnan(other):
        other = None
    return bool(one == other)
