"""The sureness of a claim: what most seeds say of its conditions, and how many further seeds would settle it.

Each condition is asked of every seed alone, at the learning rates that the cells have chosen; seed 3 of one model is
compared with seed 3 of another. The outcome of most seeds is sure if Wilson's interval of their share lies above one
half. By the paper's reading, which is the best over learning rates and seeds, one lucky seed is enough.
"""

from collections import Counter
from dataclasses import dataclass

from orch.analysis.claims.claim import Claim, ClaimPart
from orch.analysis.claims.condition import Condition, ConditionState
from orch.analysis.claims.evidence import Evidence
from orch.analysis.claims.verdict import Verdict, over_readings
from orch.analysis.statistics import HALF, Share


@dataclass(frozen=True, slots=True)
class SeedFinding:
    """The outcome of a condition for most of the seeds that have results."""

    condition: Condition
    outcome: ConditionState
    """Outcome of the largest number of seeds; `MISSING` if no seed has results."""
    share: Share | None
    """Seeds with that outcome; None if no seed has results."""
    seeds: tuple[int, ...] = ()
    """Seeds that have results in every cell that the condition asks for."""

    @property
    def is_sure(self) -> bool:
        """Whether most seeds have the outcome, beyond doubt at the confidence asked for."""
        return self.share is not None and self.share.low > HALF

    @property
    def is_open(self) -> bool:
        """Whether seeds have results and more of them could make it sure."""
        return self.share is not None and not self.is_sure

    @property
    def is_tied(self) -> bool:
        """Whether no outcome has more than half of the seeds."""
        return self.share is not None and self.share.value <= HALF

    @property
    def leaning(self) -> ConditionState:
        """The outcome of most seeds, sure or not; `MISSING` if it is tied or without seeds."""
        return ConditionState.MISSING if self.is_tied else self.outcome

    @property
    def num_seeds(self) -> int:
        return len(self.seeds)

    @property
    def more(self) -> int | None:
        """Further seeds that would make it sure if the share stays; None if it is tied or without seeds."""
        return None if self.share is None or self.is_tied else self.share.more


@dataclass(frozen=True, slots=True)
class ReadingSureness:
    """The shares of seeds that support and contradict a claim, by one reading of the paper."""

    name: str
    parts: tuple[tuple[ClaimPart, tuple[SeedFinding, ...]], ...]

    @property
    def findings(self) -> list[SeedFinding]:
        return [finding for _, findings in self.parts for finding in findings]

    @property
    def verdict(self) -> Verdict:
        """The verdict that is sure; `NOT_ENOUGH` while any condition with results is not."""
        if any(each.outcome is ConditionState.VIOLATED for each in self.findings if each.is_sure):
            return Verdict.CONTRADICTED
        return Verdict.NOT_ENOUGH if any(each.is_open for each in self.findings) else self.leaning

    @property
    def leaning(self) -> Verdict:
        """The verdict if the outcome of most seeds counted everywhere, sure or not."""
        outcomes = [[each.leaning for each in findings] for _, findings in self.parts]
        if any(ConditionState.VIOLATED in found for found in outcomes):
            return Verdict.CONTRADICTED
        pairs = zip(self.parts, outcomes, strict=True)
        enough = all(found.count(ConditionState.HOLDS) >= part.at_least for (part, _), found in pairs)
        unclear = any(each.is_tied for each in self.findings) or any(
            ConditionState.UNCLEAR in each for each in outcomes
        )
        return Verdict.SUPPORTED if enough and not unclear else Verdict.NOT_ENOUGH

    @property
    def settling(self) -> list[SeedFinding]:
        """Conditions of which further seeds would settle the verdict, as far as the present shares tell."""
        findings = [each for each in self.findings if each.is_open]
        violated = [each for each in findings if each.leaning is ConditionState.VIOLATED]
        if violated:
            return [min(violated, key=lambda each: (each.more or 0, -each.num_seeds))]
        if self.leaning is Verdict.SUPPORTED:
            return findings
        return [each for each in findings if each.is_tied]


@dataclass(frozen=True, slots=True)
class Sureness:
    """The answer of most seeds about a claim, by every reading of the paper and at some confidence."""

    confidence: float
    readings: tuple[ReadingSureness, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict that is sure, over all readings; `NOT_ENOUGH` if it is undecided."""
        return over_readings(reading.verdict for reading in self.readings)

    @property
    def leaning(self) -> Verdict:
        """The verdict if the outcome of most seeds counted everywhere, sure or not."""
        return over_readings(reading.leaning for reading in self.readings)

    @property
    def deciding(self) -> tuple[ReadingSureness, ...]:
        """Readings that lead to the verdict, or while it is undecided those that are undecided."""
        return tuple(reading for reading in self.readings if reading.verdict is self.verdict)

    @property
    def weakest(self) -> SeedFinding | None:
        """The condition with seeds that is least sure, of those that lead to the verdict; None without seeds."""
        contradicted = self.verdict is Verdict.CONTRADICTED
        findings = [each for _, each in self.settling] or [each for one in self.deciding for each in one.findings]
        found = [
            (each.share.low, place, each)
            for place, each in enumerate(findings)
            if each.share is not None and (not contradicted or each.outcome is ConditionState.VIOLATED)
        ]
        return (max if contradicted else min)(found)[2] if found else None

    @property
    def settling(self) -> list[tuple[str, SeedFinding]]:
        """Conditions of which further seeds would settle an undecided claim, each with the reading that it is of."""
        if self.verdict is not Verdict.NOT_ENOUGH:
            return []
        readings = [each for each in self.deciding if self.leaning in (each.leaning, Verdict.NOT_ENOUGH)]
        if self.leaning is Verdict.SUPPORTED:  # by one reading is enough
            readings = [min(readings, key=lambda each: sum(finding.more or 0 for finding in each.settling))]
        return [(reading.name, each) for reading in readings for each in reading.settling]

    @property
    def more_seeds(self) -> int | None:
        """Further seeds after which the claim is settled if the shares stay; None if it is, or if none would do."""
        needed = [each.more for _, each in self.settling]
        known = [number for number in needed if number is not None]
        return max(known) if known and len(known) == len(needed) else None


def assure(claim: Claim, evidence: Evidence, readings: tuple[str, ...], confidence: float) -> Sureness:
    """Ask each condition of a claim of every seed alone, by these readings of the paper."""
    return Sureness(
        confidence,
        tuple(
            ReadingSureness(
                name,
                tuple(
                    (part, tuple(_finding(each, evidence, name, confidence) for each in part.conditions))
                    for part in claim.parts
                ),
            )
            for name in readings
        ),
    )


def _finding(condition: Condition, evidence: Evidence, reading: str, confidence: float) -> SeedFinding:
    answers = (evidence.ask(question, reading) for question in condition.questions)
    seeds = sorted({seed for answer in answers if answer is not None for seed in answer.by_seed})
    outcomes = {seed: condition.check(evidence.of_seed(seed), reading).outcome for seed in seeds}
    known = {seed: outcome for seed, outcome in outcomes.items() if outcome is not ConditionState.MISSING}
    if not known:
        return SeedFinding(condition, ConditionState.MISSING, None)
    [(outcome, number)] = Counter(known.values()).most_common(1)
    return SeedFinding(condition, outcome, Share(number, len(known), confidence), tuple(known))
