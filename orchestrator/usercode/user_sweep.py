"""A sweep of the user's own, which reads like a built-in one; what it yields is checked on the way."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orch import models, tasks
from orch.core.errors import InvalidCode
from orch.sweeps.cell import Cell
from orch.sweeps.registry import Sweep
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results
from orch.usercode.code import UserCode
from orch.usercode.loading import explained


@dataclass(frozen=True, slots=True)
class UserSweep(Sweep):
    code: UserCode

    @property
    def in_all(self) -> bool:
        return False

    @property
    def reproduces(self) -> str:
        return getattr(self._source, "REPRODUCES", "")

    def cells(self, scale: Scale, results: Results) -> Iterable[Cell]:
        with explained(self.code):
            asked = self._source.cells(scale, results)
            for cell in asked:
                if problem := _problem(cell):
                    frame = getattr(asked, "gi_frame", None)
                    line = "" if frame is None else f", line {frame.f_lineno}"
                    raise InvalidCode([f"{self.code.file}{line}: {problem}"])
                yield cell


def _problem(cell: Any) -> str:
    """Here an error can still name the file: later it would be in the middle of a plan."""
    if not isinstance(cell, Cell):
        return f"cells yields a {type(cell).__name__}: yield scale.cell(task, model) instead"
    if not cell.trials:
        return "cells yields a cell without trials: give it a learning rate and a seed at least"
    trial = cell.example
    for kind, registry, part in (("task", tasks.REGISTRY, trial.task), ("model", models.REGISTRY, trial.model)):
        known = registry.get(part.name)
        if known is None or known.revision != getattr(part, "revision", None):
            return f"{kind} {part.name} cannot be found by its name: define or import it at the top level of the file"
    trial.model.num_parameters(trial.vocabulary)
    trial.model.forward_flops(trial.vocabulary, 1, trial.task.num_tokens(1))
    return ""
