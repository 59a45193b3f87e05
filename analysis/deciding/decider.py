"""The decider of a run of sweeps: asked again as results arrive, it says which trials are worth running."""

import functools
from collections.abc import Collection, Iterable, Sequence

from orch.analysis.aggregate import COLUMNS
from orch.analysis.board import Board
from orch.analysis.claims.evidence import ATLAS, DEMO, cells_by_key
from orch.analysis.claims.judging import JUDGED_SCALES, claims_at
from orch.analysis.deciding.values import cell_values, claim_values
from orch.core.errors import InvalidSettings, OrchError, UnknownName
from orch.planning.plan import PlannedTrial
from orch.running.requests import Request
from orch.store import Store
from orch.sweeps.catalogue import resolve
from orch.sweeps.scales import Scale, find_scale
from orch.sweeps.selection import rows_by_id
from orch.sweeps.trial import Trial
from orch.sweeps.where import Known, parse_where

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
        self._store, self._confidence = store, confidence
        self._requests = [(each, _claimed_scales(each) if kind == CLAIMS else []) for each in requests]
        if kind == CLAIMS and not any(scales for _, scales in self._requests):
            asked = "; ".join(each.description for each in requests)
            raise OrchError(f"no claim asks for any trial of {asked}: decide cells, or leave the decision out")

    def values(self, left: Collection[PlannedTrial]) -> dict[str, float]:
        """Return the value of each trial that is worth running, by id. The others cannot settle anything any more."""
        finished = rows_by_id(self._store.read("trials", COLUMNS)) if self._store.exists() else {}
        found: dict[str, float] = {}
        for request, scales in self._requests:
            board = Board(find_scale(request.scale), finished, catalogue=request.catalogue)
            for trial_id, value in self._values_on(board, request, scales, left):
                found[trial_id] = max(value, found.get(trial_id, 0.0))
        return found

    def _values_on(
        self, board: Board, request: Request, scales: Iterable[Scale], left: Iterable[PlannedTrial]
    ) -> Iterable[tuple[str, float]]:
        if self.kind == CELLS:
            return cell_values(board, resolve(request.sweeps, board.catalogue), left, self._confidence).items()
        return [item for each in scales for item in claim_values(board.at(each), left, self._confidence).items()]


def _claimed_scales(request: Request) -> list[Scale]:
    """Return the scales whose claims ask for trials of a request.

    The demo and the atlas have scales of their own. A user's sweep may have trials of another scale than it is asked
    for at, such as the seeds that `orch claims --plan` writes: then it is every scale that has them.
    """
    board = Board(find_scale(request.scale), catalogue=request.catalogue)
    matches = parse_where(request.where, Known.of(board.catalogue)).matches

    @functools.cache
    def asked(scale: Scale) -> set[Trial]:
        questions = {(each.sweep, each.key) for claim in claims_at(scale.name) for each in claim.questions}
        cells = cells_by_key(board.at(scale), {sweep for sweep, _ in questions})
        return {cell.cell.example.stackable() for (*place, _), cell in cells.items() if tuple(place) in questions}

    found: dict[str, Scale] = {}
    for sweep in resolve(request.sweeps, board.catalogue):
        cells = (each.cell for each in board.cells(sweep))
        wanted = {cell.example.stackable() for cell in cells if any(map(matches, cell.planned))}
        own = JUDGED_SCALES[sweep] if sweep in (DEMO, ATLAS) else board.scale
        others = [each for each in JUDGED_SCALES.values() if not each.sparse and wanted & asked(each)]
        found |= {each.name: each for each in ([own] if wanted & asked(own) else others)}
    return list(found.values())
