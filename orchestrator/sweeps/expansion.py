"""Expansion of sweeps into trials. A trial that several sweeps ask for appears once."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from orch.core.errors import InvalidSettings
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.cell import Cell
from orch.sweeps.protocols import Protocol
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results, Waiting
from orch.sweeps.trial import Trial, check_number


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
        cells = _checked_cells(name, catalogue.sweeps[name].cells(scale, results))
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


def _checked_cells(name: str, cells: Iterable[Cell]) -> list[tuple[str, Cell]]:
    """Return the cells of a sweep with its name, or raise an error as soon as they have too many trials."""
    found, num_trials = [], 0
    for cell in cells:
        num_trials += len(cell.trials)
        check_number(num_trials, f"the sweep {name} has")
        found.append((name, cell))
    return found


def under_protocol(names: Iterable[str], scale: Scale, catalogue: Catalogue = BUILT_IN) -> list[str]:
    """Return those of these sweeps that can run under the protocol of a scale; without a protocol, all of them."""
    protocol = scale.protocol
    return [name for name in names if protocol is None or not _problems(name, scale, protocol, catalogue)]


def _check_protocol(names: Iterable[str], scale: Scale, protocol: Protocol, catalogue: Catalogue) -> None:
    """Raise one error about all sweeps that cannot run under a protocol."""
    problems = [problem for name in names for problem in _problems(name, scale, protocol, catalogue)]
    if problems:
        raise InvalidSettings(problems)


def _problems(name: str, scale: Scale, protocol: Protocol, catalogue: Catalogue) -> list[str]:
    cells = catalogue.sweeps[name].cells(scale.under(None), Results.none())
    return protocol.problems(name, (cell.example for cell in cells if cell.trials))
