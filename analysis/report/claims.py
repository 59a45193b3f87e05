"""The report's section on the paper's claims."""

from collections.abc import Iterable

from orch.analysis.claims import ClaimsAtScale, Judgement, Verdict, evidence_text, verdict_text
from orch.analysis.claims.condition import FAILED
from orch.analysis.report.html import Markup, element, join, table
from orch.sweeps.selection import LEARNED

SYMBOLS = {Verdict.SUPPORTED: "✓", Verdict.CONTRADICTED: "✗", Verdict.NOT_ENOUGH: "–"}
_CLASSES = {Verdict.SUPPORTED: "verdict good", Verdict.CONTRADICTED: "verdict bad", Verdict.NOT_ENOUGH: "verdict soft"}


def claims_section(asked: Iterable[ClaimsAtScale]) -> Markup:
    intro = element(
        "p",
        f"Each is asked of the results: a model learns at an accuracy of {LEARNED} or more and fails below {FAILED},"
        " the best over learning rates and seeds; between the two it does neither. All of them hold on the published"
        " numbers, where there are any.",
    )
    parts = [intro]
    for each in asked:
        rows = [_row(judgement) for judgement in each.with_results]
        parts.append(element("h3", f"At {each.scale} scale: {each.summary}"))
        parts += [table(["verdict", "claim", "evidence"], rows)] if rows else []
        parts += [element("p", each.without_results, class_="soft")] if each.without_results else []
    return join(parts)


def _row(judgement: Judgement) -> list[Markup | str]:
    verdict = judgement.verdict
    note = element("div", judgement.claim.note, class_="soft") if judgement.claim.note else ""
    return [
        element("span", f"{SYMBOLS[verdict]} {verdict_text(judgement)}", class_=_CLASSES[verdict]),
        join([element("div", judgement.claim.sentence), note]),
        evidence_text(judgement),
    ]
