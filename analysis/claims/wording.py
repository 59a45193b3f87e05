"""A judgement in words: the verdict with the moduli that it covers, and the numbers that it is based on."""

from collections.abc import Iterator, Sequence

from orch.analysis.claims.condition import ConditionState, Finding
from orch.analysis.claims.judgement import ClaimReading, Judgement, PartFindings
from orch.analysis.claims.verdict import Verdict
from orch.core.counted import counted

MOST_LISTED = 4
"""Most numbers that are listed one by one; more are given as a count and a range."""
MOST_NAMED = 3
"""Most conditions without results that are listed by name."""


def verdict_text(judgement: Judgement) -> str:
    """Return the verdict with the moduli that it covers, such as `supported for m = 2, 3`.

    Claims of the field are not about moduli.
    """
    if judgement.verdict is Verdict.NOT_ENOUGH:
        return str(judgement.verdict)
    if judgement.claim.source:
        return str(judgement.verdict)
    text = f"{judgement.verdict} for m = {', '.join(map(str, judgement.moduli))}"
    if len(judgement.deciding_readings) < len(judgement.readings):
        names = " or ".join(reading.name for reading in judgement.deciding_readings)
        text += f", with {judgement.claim.readings_of} {names}"
    return text


def sureness_text(judgement: Judgement) -> str:
    """Return what most seeds say and how sure that is; empty if there is nothing that further seeds could settle."""
    sureness = judgement.sureness
    weakest, more = sureness.weakest, sureness.more_seeds
    if weakest is None or weakest.share is None:
        return ""
    share = weakest.share
    seeds = (
        f"{share.num} of {counted(share.of, 'seed')} ({share.low:.2f}–{share.high:.2f}) for {weakest.condition.label}"
    )
    if sureness.verdict is not Verdict.NOT_ENOUGH:
        says = "agree" if sureness.verdict is judgement.verdict else f"say {sureness.verdict}"
        return f"sure ({sureness.confidence:.0%}): most seeds {says}, at the least {seeds}"
    if not sureness.settling:
        return ""
    if more is None:
        return f"not sure: {seeds}, too close to half to say how many more would settle it"
    num_conditions = len(sureness.settling)
    each = f" in each of {num_conditions} conditions" if num_conditions > 1 else ""
    turns = "" if sureness.leaning is judgement.verdict else f" as {sureness.leaning}"
    return f"not sure: {seeds}; {counted(more, 'more seed')}{each} would settle it{turns}"


def evidence_text(judgement: Judgement) -> str:
    """Return the evidence by every reading."""
    if len(judgement.readings) == 1:
        return _reading(judgement.readings[0])
    noun = judgement.claim.readings_of.removeprefix("the ").capitalize()
    return ". ".join(f"{noun} {each.name} ({each.verdict}): {_reading(each)}" for each in judgement.readings)


def _reading(reading: ClaimReading) -> str:
    return "; ".join(f"{each.part.title}: {', '.join(_part(each))}" for each in reading.parts)


def _part(part: PartFindings) -> Iterator[str]:
    if violated := part.having(ConditionState.VIOLATED):
        yield f"against it {_listed(violated)}"
    if unclear := part.having(ConditionState.UNCLEAR):
        yield f"unclear {_listed(unclear)}"
    if holding := part.having(ConditionState.HOLDS):
        yield _listed(holding)
    missing = part.having(ConditionState.MISSING)
    started = [finding for finding in missing if finding.values]
    if started:
        yield f"unfinished {_listed(started)}"
    lacking = [finding for finding in missing if not finding.values]
    if part.num_lacking and lacking:
        names = [finding.label for finding in lacking[:MOST_NAMED]]
        more = [f"{len(lacking) - MOST_NAMED} more"] if len(lacking) > MOST_NAMED else []
        reasons = " or ".join(dict.fromkeys(finding.text for finding in lacking))
        yield f"lacks {part.num_lacking} of {', '.join([*names, *more])} ({reasons})"


def _listed(findings: Sequence[Finding]) -> str:
    if len(findings) <= MOST_LISTED:
        return ", ".join(f"{finding.label} {finding.text}" for finding in findings)
    what = {1: "", 2: " differences"}
    sizes = {len(finding.values) for finding in findings}
    if len(sizes) != 1 or not sizes <= what.keys():
        return counted(len(findings), "cell")
    values = [finding.values[0] - sum(finding.values[1:]) for finding in findings]
    return f"{counted(len(findings), 'cell')},{what[sizes.pop()]} from {_number(min(values))} to {_number(max(values))}"


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"
