"""The claims of the paper, and of the field, judged by the results of a store.

A claim is a sentence with conditions on named cells, evidence has the accuracies of cells, and a verdict says whether
the evidence supports the claim. Accuracies are the best over learning rates and seeds, as in the paper's tables.
"""

from orch.analysis.claims.claim import Claim
from orch.analysis.claims.evidence import ATLAS, DEMO
from orch.analysis.claims.judging import CLAIMS, FIELD_CLAIMS, ClaimsAtScale, judge_board, judge_store
from orch.analysis.claims.table import claims_table, to_dict
from orch.analysis.claims.verdict import Judgement, Verdict
from orch.analysis.claims.wording import evidence_text, verdict_text

__all__ = [
    "ATLAS",
    "CLAIMS",
    "DEMO",
    "FIELD_CLAIMS",
    "Claim",
    "ClaimsAtScale",
    "Judgement",
    "Verdict",
    "claims_table",
    "evidence_text",
    "judge_board",
    "judge_store",
    "to_dict",
    "verdict_text",
]
