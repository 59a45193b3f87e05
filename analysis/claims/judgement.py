"""The judgement of one claim by evidence: what was found about each condition, and the verdict."""

from dataclasses import dataclass

from orch.analysis.claims.claim import Claim, ClaimPart
from orch.analysis.claims.condition import ConditionState, Finding
from orch.analysis.claims.evidence import Evidence
from orch.analysis.claims.sureness import Sureness, assure
from orch.analysis.claims.verdict import Verdict, over_readings
from orch.analysis.statistics import CONFIDENCE


@dataclass(frozen=True, slots=True)
class PartFindings:
    """The findings of one part of a claim."""

    part: ClaimPart
    findings: tuple[Finding, ...]

    def having(self, *outcomes: ConditionState) -> list[Finding]:
        """Return the findings with one of these outcomes."""
        return [finding for finding in self.findings if finding.outcome in outcomes]

    @property
    def num_lacking(self) -> int:
        """Number of further conditions that would have to hold."""
        return max(0, self.part.at_least - len(self.having(ConditionState.HOLDS)))


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """The findings of a claim by one reading of the paper."""

    name: str
    parts: tuple[PartFindings, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict by this reading."""
        if any(each.having(ConditionState.VIOLATED) for each in self.parts):
            return Verdict.CONTRADICTED
        if any(each.num_lacking or each.having(ConditionState.UNCLEAR) for each in self.parts):
            return Verdict.NOT_ENOUGH
        return Verdict.SUPPORTED


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with its findings by every reading."""

    claim: Claim
    readings: tuple[ClaimReading, ...]
    sureness: Sureness
    """What most seeds say, and how sure that is."""

    @property
    def verdict(self) -> Verdict:
        """The verdict over all readings, by the best over learning rates and seeds, as in the paper."""
        return over_readings(reading.verdict for reading in self.readings)

    @property
    def deciding_readings(self) -> tuple[ClaimReading, ...]:
        """Readings that lead to the verdict."""
        return tuple(reading for reading in self.readings if reading.verdict is self.verdict)

    @property
    def moduli(self) -> tuple[int, ...]:
        """Moduli that the verdict covers."""
        decided = (ConditionState.HOLDS, ConditionState.VIOLATED)
        parts = [each for reading in self.deciding_readings for each in reading.parts]
        findings = [finding for each in parts for finding in each.having(*decided)]
        return tuple(sorted({finding.modulus for finding in findings}))

    @property
    def has_results(self) -> bool:
        """Whether any cell of the claim has a result."""
        return any(
            finding.values or finding.trial_ids or finding.outcome is not ConditionState.MISSING
            for finding in self._findings
        )

    @property
    def trial_ids(self) -> tuple[str, ...]:
        """Trials whose results the findings come from."""
        return tuple(dict.fromkeys(trial_id for finding in self._findings for trial_id in finding.trial_ids))

    @property
    def _findings(self) -> list[Finding]:
        return [finding for reading in self.readings for each in reading.parts for finding in each.findings]


def judge(claim: Claim, evidence: Evidence, confidence: float = CONFIDENCE) -> Judgement:
    """Judge a claim by the evidence, and determine with how much confidence most seeds agree."""
    readings = []
    for name in claim.readings:
        parts = (
            PartFindings(part, tuple(condition.check(evidence, name) for condition in part.conditions))
            for part in claim.parts
        )
        readings.append(ClaimReading(name, tuple(parts)))
    # Without results, and by published numbers, the findings are the same by every reading.
    if all(reading.parts == readings[0].parts for reading in readings):
        readings = [ClaimReading("", readings[0].parts)]
    sureness = assure(claim, evidence, tuple(each.name for each in readings), confidence)
    return Judgement(claim, tuple(readings), sureness)
