"""The value of a trial: the open claims or cells that it is expected to settle, in proportion to its time."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from orch.analysis.board import Board, BoardCell
from orch.analysis.claims.claim import Claim
from orch.analysis.claims.condition import Condition, ConditionState
from orch.analysis.claims.evidence import Question, board_evidence, cells_by_key
from orch.analysis.claims.judgement import ClaimReading, Judgement, judge
from orch.analysis.claims.judging import claims_at
from orch.analysis.claims.missing_seeds import seeds_to_add
from orch.analysis.claims.sureness import ReadingSureness, SeedFinding
from orch.analysis.claims.verdict import Verdict
from orch.analysis.deciding.needs import CellNeeds, Need, together
from orch.analysis.statistics import CONFIDENCE, Share
from orch.planning.plan import LEAST_SECONDS, PlannedTrial
from orch.sweeps.measured import measured
from orch.sweeps.selection import LEARNED, choose_rate
from orch.sweeps.trial import Trial

HARDLY = 0.1
"""Probability that a claim or cell is settled by seeds that are fewer than it needs by the present share."""


def cell_values(
    board: Board, sweeps: Collection[str], left: Iterable[PlannedTrial], confidence: float | None = None
) -> dict[str, float]:
    """Return the value of each trial that can still settle a cell; a trial of a settled cell has none.

    A cell is settled once a trial has learned, or every learning rate was tried, a single one with every seed. With a
    `confidence`, it is settled once it is that sure that most seeds of the chosen learning rate learn, or that most do
    not.
    """
    needs = CellNeeds((cell for sweep in sweeps for cell in board.cells(sweep)), left)
    wanted = [_need_of_share(needs, cell, confidence) if confidence else needs.need(cell) for cell in needs.cells]
    return _values((1.0 if need.enough else HARDLY, need) for need in wanted)


def _need_of_share(needs: CellNeeds, cell: Trial, confidence: float) -> Need:
    rows = needs.rows(cell)
    if not rows:
        return needs.need(cell)
    chosen = choose_rate(rows)
    share = Share.at_least((measured(row, "ood_accuracy") for row in chosen.rows), LEARNED, confidence)
    if share is not None and share.is_sure:
        return Need()
    has = {row["init_seed"] for row in chosen.rows}
    more = seeds_to_add(None if share is None else share.more, len(has))
    return needs.need_seeds(cell, chosen.learning_rate, has, more)


def claim_values(
    board: Board, left: Iterable[PlannedTrial], confidence: float | None = None, claims: Sequence[Claim] | None = None
) -> dict[str, float]:
    """Return the value of each trial that can still change the verdict on a claim; other trials have none.

    The claims are by default all that are judged at the board's scale, to which the trials must belong. Verdicts go by
    the best over learning rates and seeds, or with a `confidence` by most seeds.
    """
    asked = claims_at(board.scale.name) if claims is None else claims
    return _ClaimValues(board, left, asked, confidence).values()


class _ClaimValues:
    def __init__(self, board: Board, left: Iterable[PlannedTrial], claims: Sequence[Claim], confidence: float | None):
        sweeps = {sweep for claim in claims for sweep in claim.sweeps}
        evidence = board_evidence(board, sweeps)
        self._board, self._confidence = board, confidence
        self._by_key = cells_by_key(board, sweeps)
        self._needs = CellNeeds(self._by_key.values(), left)
        self._judgements = [judge(claim, evidence, confidence or CONFIDENCE) for claim in claims]

    def values(self) -> dict[str, float]:
        find = self._by_seeds if self._confidence else self._by_best
        return _values(bundle for judgement in self._judgements for bundle in find(judgement))

    def _by_best(self, judgement: Judgement) -> Iterator[tuple[float, Need]]:
        """Yield sets of trials with the probability that they change the verdict by the paper's reading."""
        if judgement.verdict is Verdict.CONTRADICTED:
            return
        for reading in judgement.deciding_readings:
            for name in _names(judgement, reading.name):
                yield from self._of_reading(reading, name)

    def _of_reading(self, reading: ClaimReading, name: str) -> Iterator[tuple[float, Need]]:
        """Yield what gives a claim its verdict, then what might still contradict it."""
        necessary: list[Need] = []
        others: list[Need] = []
        possible = not any(part.having(ConditionState.UNCLEAR) for part in reading.parts)
        for part in reading.parts:
            pairs = zip(part.part.conditions, part.findings, strict=True)
            found = [self._need(each, name) for each, finding in pairs if finding.outcome is ConditionState.MISSING]
            cheapest = sorted(filter(None, found), key=lambda need: need.seconds)
            possible &= len(cheapest) >= part.num_lacking
            necessary += cheapest[: part.num_lacking]
            others += cheapest[part.num_lacking :]
        if possible and necessary:
            yield 1.0, together(necessary)
        else:
            others += necessary
        holding = sum(len(part.having(ConditionState.HOLDS)) for part in reading.parts)
        for need in others:
            yield 1 / (2 + holding), need

    def _by_seeds(self, judgement: Judgement) -> Iterator[tuple[float, Need]]:
        """Yield sets of trials with the probability that they make a verdict sure."""
        if judgement.sureness.verdict is Verdict.NOT_ENOUGH:
            for reading in judgement.sureness.deciding:
                for name in _names(judgement, reading.name):
                    necessary = [self._seeds(each, name) for each in reading.settling]
                    need = together(filter(None, [*necessary, *self._without_seeds(reading, name)]))
                    yield 1.0 if need.enough else HARDLY, need

    def _without_seeds(self, reading: ReadingSureness, name: str) -> Iterator[Need]:
        """Yield what the conditions need that have no seeds yet, as many of each part as its verdict lacks."""
        for part, findings in reading.parts:
            lacking = part.at_least - sum(each.leaning is ConditionState.HOLDS for each in findings)
            found = [self._need(each.condition, name) for each in findings if each.share is None]
            yield from sorted(filter(None, found), key=lambda need: need.seconds)[: max(0, lacking)]

    def _need(self, condition: Condition, reading: str) -> Need:
        """Return what gives a condition its outcome; once its cells are settled, the cheapest control that is left."""
        need = together(self._needs_of(condition.questions, reading))
        controls = filter(None, self._needs_of(condition.controls, reading))
        return need or min(controls, key=lambda each: each.seconds, default=need)

    def _needs_of(self, questions: Iterable[Question], reading: str) -> Iterator[Need]:
        for cell, split in self._cells(questions, reading):
            yield self._needs.need(cell.cell.example.stackable(), split)

    def _seeds(self, finding: SeedFinding, reading: str) -> Need:
        number = seeds_to_add(finding.more, finding.num_seeds)
        found = []
        for cell, _ in self._cells(finding.condition.questions, reading):
            if cell.choice is not None:
                key, has = cell.cell.example.stackable(), self._board.every_seed(cell)
                found.append(self._needs.need_seeds(key, cell.choice.learning_rate, has, number))
        return together(found)

    def _cells(self, questions: Iterable[Question], reading: str) -> Iterator[tuple[BoardCell, str]]:
        for question in questions:
            places = ((question.sweep, question.key, name) for name in (reading, ""))
            if cell := next((self._by_key[place] for place in places if place in self._by_key), None):
                yield cell, question.split


def _names(judgement: Judgement, name: str) -> tuple[str, ...]:
    """Return the readings that findings stand for: all of them, while they cannot be told apart."""
    return (name,) if name else judgement.claim.readings


def _values(bundles: Iterable[tuple[float, Need]]) -> dict[str, float]:
    """Share the probability of settling something out over its trials, in proportion to their expected time."""
    found: dict[str, float] = defaultdict(float)
    for probability, need in bundles:
        if need:
            rate = probability / need.seconds
            for planned, chance in need.trials:
                found[planned.id] += rate * chance * max(planned.seconds, LEAST_SECONDS)
    return dict(found)
