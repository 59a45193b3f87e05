"""The declaration of an export target, and a finished trial as every target receives it."""

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orch.core.errors import OrchError


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedTrial:
    """A finished trial in the words of trackers. Values that do not apply or were not measured are left out."""

    row: dict[str, Any]
    """The row of the table `trials`, with nulls."""
    settings: dict[str, Any]
    """Settings of the trial, its task and its model."""
    metrics: dict[str, float]
    """Final numbers: accuracies, losses, `accuracy_<length>` for every tested length, steps and seconds."""
    tags: dict[str, str]
    """Why training ended, revisions of the code, and the origin: machine, device, commit, packages, times."""
    curve: Sequence[dict[str, Any]]
    """Rows of the table `curves`, in the order of their steps."""

    @property
    def id(self) -> str:
        """The trial's identity."""
        return str(self.row["trial_id"])

    @property
    def name(self) -> str:
        """A name for people: model, task and seed."""
        return f"{self.row['model']}-{self.row['task']}-seed{self.row['init_seed']}-{self.id[:8]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Exporter:
    """An export target."""

    about: str
    """What is written, in a few words."""
    known: Callable[[Path], set[str]]
    """Returns the ids of the trials that a folder has completely. What a crash left half written is not counted."""
    write: Callable[[Path, Iterable[ExportedTrial]], None]
    """Adds trials that the folder does not have."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Modules that the target imports, each with the name of its package for pip."""

    def check(self, target: str) -> None:
        """Raise an error with the remedy if a package that the target needs is not installed."""
        packages = [package for module, package in self.needs.items() if importlib.util.find_spec(module) is None]
        if packages:
            names = " and ".join(packages)
            raise OrchError(f"orch export {target} needs {names}: run pip install {' '.join(packages)}")
