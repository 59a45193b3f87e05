"""Expansion of sweeps into trials. A trial that several sweeps ask for appears once."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orch.core.errors import InvalidSettings
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.cell import Cell
from orch.sweeps.protocols import Protocol
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results, Waiting
from orch.sweeps.trial import Trial


@dataclass(frozen=True, slots=True)
class ExpandedTrial:
    """A trial with all the sweeps that ask for it."""

    id: str
    trial: Trial
    sweeps: list[str]


@dataclass(frozen=True, slots=True)
class Expansion:
    """The trials that sweeps ask for, and those whose settings depend on trials that are not finished."""

    trials: dict[str, ExpandedTrial] = field(default_factory=dict)
    """The trials by id, in the order of the sweeps."""
    waiting: dict[Waiting, list[str]] = field(default_factory=dict)
    """Trials that wait for results, with the sweeps that ask for them."""
    cells: list[tuple[str, Cell]] = field(default_factory=list)
    """Every cell, with the sweep that has it."""


def expand(names: Iterable[str], scale: Scale, results: Results, catalogue: Catalogue = BUILT_IN) -> Expansion:
    """Return every trial that these sweeps ask for at a scale. A trial that several sweeps ask for appears once."""
    expansion = Expansion()
    resolved = resolve(names, catalogue)
    if scale.protocol is not None:
        _check_protocol(resolved, scale, scale.protocol, catalogue)
    for name in resolved:
        cells = [(name, cell) for cell in catalogue.sweeps[name].cells(scale, results)]
        expansion.cells.extend(cells)
        for trial in (trial for _, cell in cells for trial in cell.trials):
            if isinstance(trial, Waiting):
                sweeps = expansion.waiting.setdefault(trial, [])
            else:
                trial_id = trial.id
                expanded = expansion.trials.get(trial_id)
                if expanded is None:
                    expanded = expansion.trials[trial_id] = ExpandedTrial(trial_id, trial, [])
                sweeps = expanded.sweeps
            if name not in sweeps:
                sweeps.append(name)
    return expansion


def _check_protocol(names: Iterable[str], scale: Scale, protocol: Protocol, catalogue: Catalogue) -> None:
    """Raise one error about all sweeps that cannot run under a protocol."""
    problems = []
    for name in names:
        cells = catalogue.sweeps[name].cells(scale.under(None), Results.none())
        problems += protocol.problems(name, (cell.example for cell in cells if cell.trials))
    if problems:
        raise InvalidSettings(problems)
