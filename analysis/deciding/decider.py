"""The decider of a run of sweeps: asked again as results arrive, it says which trials are worth running."""

from collections.abc import Collection, Iterable, Sequence

from orch.analysis.aggregate import COLUMNS
from orch.analysis.board import Board
from orch.analysis.claims.evidence import DEMO
from orch.analysis.deciding.values import cell_values, claim_values
from orch.core.errors import InvalidSettings, UnknownName
from orch.planning.plan import PlannedTrial
from orch.running.requests import Request
from orch.store import Store
from orch.sweeps.catalogue import resolve
from orch.sweeps.experiments import demo
from orch.sweeps.scales import find_scale
from orch.sweeps.selection import rows_by_id

CLAIMS, CELLS = "claims", "cells"
KINDS = (CLAIMS, CELLS)


def check_deciding(kind: str | None, confidence: float | None) -> None:
    """Raise one error that lists everything that is wrong with what a run is to decide."""
    problems = [str(UnknownName("kind of decision", kind, KINDS))] if kind is not None and kind not in KINDS else []
    if confidence is not None and kind is None:
        problems.append("a confidence says when something is settled: also say what to decide, claims or cells")
    if confidence is not None and not 0.5 <= confidence < 1:
        problems.append(f"a confidence of {confidence:g} is not between 0.5 and 1: use 0.95, for example")
    if problems:
        raise InvalidSettings(problems)


class Decider:
    """Values the trials of requests by the open claims, or by the open cells, that they are likely to settle."""

    def __init__(self, kind: str, requests: Sequence[Request], store: Store, confidence: float | None = None):
        check_deciding(kind, confidence)
        self.kind = kind
        self._requests, self._store, self._confidence = requests, store, confidence

    def values(self, left: Collection[PlannedTrial]) -> dict[str, float]:
        """Return the value of each trial that is worth running, by id. The others cannot settle anything any more."""
        finished = rows_by_id(self._store.read("trials", COLUMNS)) if self._store.exists() else {}
        found: dict[str, float] = {}
        for request in self._requests:
            board = Board(find_scale(request.scale), finished, catalogue=request.catalogue)
            for trial_id, value in self._values_on(board, resolve(request.sweeps, board.catalogue), left):
                found[trial_id] = max(value, found.get(trial_id, 0.0))
        return found

    def _values_on(
        self, board: Board, sweeps: Collection[str], left: Iterable[PlannedTrial]
    ) -> Iterable[tuple[str, float]]:
        if self.kind == CELLS:
            return cell_values(board, sweeps, left, self._confidence).items()
        boards = [board.at(demo.SMALL)] if DEMO in sweeps else []
        boards += [board] if set(sweeps) - {DEMO} else []
        return [item for each in boards for item in claim_values(each, left, self._confidence).items()]
