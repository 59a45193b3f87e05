"""Judgements as a table, or as plain values for JSON."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orch.analysis.claims.judgement import Judgement
from orch.analysis.claims.judging import UNDECIDED, ClaimsAtScale
from orch.analysis.claims.verdict import Verdict
from orch.analysis.claims.wording import evidence_text, sureness_text, verdict_text

if TYPE_CHECKING:
    from pyarrow import Table


def claims_table(judged: Iterable[ClaimsAtScale]) -> "Table":
    """Return a row for each claim at each scale."""
    import pyarrow as pa

    from orch.analysis.arrow_tables import column, to_table

    texts, numbers = (pa.list_(pa.field("element", kind)) for kind in (pa.string(), pa.int64()))
    schema = pa.schema(
        [
            column("scale", pa.string(), "the scale of the results"),
            column("claim", pa.string(), "the claim's name"),
            column("verdict", pa.string(), "supported, contradicted or not enough data, by the paper's reading"),
            column("moduli", numbers, "the moduli that the verdict covers"),
            column("sentence", pa.string(), "the claim in words"),
            column("source", pa.string(), "the publication that states it; empty for the paper that is reproduced"),
            column("evidence", pa.string(), "the numbers, in words"),
            column("confidence", pa.float64(), "the confidence of the next columns"),
            column("sure_verdict", pa.string(), "what most seeds say: supported, contradicted or undecided"),
            column(
                "least_share", pa.float64(), "share of seeds that agree, in the least sure condition; null if no seeds"
            ),
            column("least_share_low", pa.float64(), "lower end of its Wilson interval"),
            column("least_share_high", pa.float64(), "upper end of that interval"),
            column("least_seeds", pa.int64(), "seeds of that condition"),
            column("more_seeds", pa.int64(), "further seeds that would settle an undecided claim; null if not known"),
            column("sureness", pa.string(), "how sure it is, in words"),
            column("note", pa.string(), "a remark, for example about what the claim does not cover"),
            column("tasks", texts, "the tasks that the claim is about"),
            column("sweeps", texts, "the sweeps whose results the claim needs"),
            column("trial_ids", texts, "the trials that the numbers come from"),
        ]
    )
    return to_table([_row(each.scale, judgement) for each in judged for judgement in each.judgements], schema)


def verdicts_table(judged: Sequence[ClaimsAtScale]) -> "Table":
    """Return a row for each claim, in words, with its verdict at each scale and the moduli that this covers."""
    import pyarrow as pa

    from orch.analysis.arrow_tables import column, to_table

    found: dict[str, dict[str, Any]] = {}
    for each in judged:
        for judgement in each.judgements:
            claim = judgement.claim
            sentence = f"{claim.sentence.removesuffix('.')} ({claim.source})" if claim.source else claim.sentence
            row = found.setdefault(claim.id, {"claim": sentence.removesuffix(".")})
            row[each.scale] = verdict_text(judgement)
    scales = [each.scale for each in judged if any(each.scale in row for row in found.values())]
    schema = pa.schema(
        [
            column("claim", pa.string(), "the claim in words"),
            *(column(scale, pa.string(), f"the verdict at {scale} scale; null if not asked there") for scale in scales),
        ]
    )
    return to_table([dict.fromkeys(scales) | row for row in found.values()], schema)


def to_dict(judged: ClaimsAtScale) -> dict[str, Any]:
    """Return the judgements with every finding, as plain values for JSON."""
    return {
        "scale": judged.scale,
        "claims": [
            _row(judged.scale, judgement) | {"findings": _findings(judgement)} for judgement in judged.judgements
        ],
    }


def _row(scale: str, judgement: Judgement) -> dict[str, Any]:
    claim = judgement.claim
    return {
        "scale": scale,
        "claim": claim.id,
        "verdict": str(judgement.verdict),
        "moduli": list(judgement.moduli),
        "sentence": claim.sentence,
        "source": claim.source,
        "evidence": evidence_text(judgement),
        **_sureness(judgement),
        "note": claim.note,
        "tasks": list(claim.tasks),
        "sweeps": sorted(claim.sweeps),
        "trial_ids": list(judgement.trial_ids),
    }


def _sureness(judgement: Judgement) -> dict[str, Any]:
    sureness = judgement.sureness
    share = sureness.weakest and sureness.weakest.share
    return {
        "confidence": sureness.confidence,
        "sure_verdict": UNDECIDED if sureness.verdict is Verdict.NOT_ENOUGH else str(sureness.verdict),
        "least_share": share and share.value,
        "least_share_low": share and share.low,
        "least_share_high": share and share.high,
        "least_seeds": share and share.of,
        "more_seeds": sureness.more_seeds,
        "sureness": sureness_text(judgement),
    }


def _findings(judgement: Judgement) -> list[dict[str, Any]]:
    return [
        {
            "reading": reading.name,
            "part": each.part.title,
            "cell": finding.label,
            "modulus": finding.modulus,
            "outcome": str(finding.outcome),
            "told": finding.text,
            "values": list(finding.values),
            "trial_ids": list(finding.trial_ids),
        }
        for reading in judgement.readings
        for each in reading.parts
        for finding in each.findings
    ]
