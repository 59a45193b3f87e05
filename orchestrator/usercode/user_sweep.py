"""A user's sweep, with the interface of a built-in one. Each cell that it yields is checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orch.core.errors import InvalidCode
from orch.core.prints import prints_are_messages
from orch.sweeps.cell import Cell
from orch.sweeps.definitions import Definitions
from orch.sweeps.registry import Sweep
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results
from orch.usercode.code import UserCode
from orch.usercode.loading import explained

_END: Any = object()


@dataclass(frozen=True, slots=True)
class UserSweep(Sweep):
    """The sweep of a user's file. `scale.model` and `scale.task` know the models and tasks of `definitions`."""

    code: UserCode
    definitions: Definitions

    @property
    def in_all(self) -> bool:
        return False

    @property
    def title(self) -> str:
        """Its TITLE, else the first line of the file's docstring, else the name of the sweep."""
        described = (self._source.__doc__ or "").strip().splitlines()
        return str(getattr(self._source, "TITLE", "")) or (described[0] if described else self.name)

    @property
    def reproduces(self) -> str:
        return getattr(self._source, "REPRODUCES", "")

    def cells(self, scale: Scale, results: Results) -> Iterable[Cell]:
        with explained(self.code):
            with prints_are_messages():
                given = self._source.cells(replace(scale, definitions=self.definitions), results)
                cells = iter(given)
            while True:
                with prints_are_messages():  # not around the `yield`, where the code of others runs
                    if (cell := next(cells, _END)) is _END:
                        return
                    problem = _problem(cell, self.definitions)
                if problem:
                    frame = getattr(given, "gi_frame", None)
                    line = "" if frame is None else f", line {frame.f_lineno}"
                    raise InvalidCode([f"{self.code.file}{line}: {problem}"])
                yield cell


def _problem(cell: Any, definitions: Definitions) -> str:
    """Return what is wrong with a cell. Only here can the error name the file and the line that yielded it."""
    if not isinstance(cell, Cell):
        return f"cells yields a {type(cell).__name__}: yield scale.cell(task, model) instead"
    if not cell.trials:
        return "cells yields a cell without trials: give it a learning rate and a seed at least"
    trial = cell.example
    known: Mapping[str, Mapping[str, type[Any]]] = {"task": definitions.tasks, "model": definitions.models}
    for kind, part in (("task", trial.task), ("model", trial.model)):
        if getattr(known[kind].get(part.name), "revision", None) != getattr(part, "revision", 0):
            return f"{kind} {part.name} cannot be found by its name: define or import it at the top level of the file"
    trial.model.num_parameters(trial.vocabulary)
    trial.model.forward_flops(trial.vocabulary, 1, trial.task.num_tokens(1))
    return ""
