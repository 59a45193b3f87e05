"""The paper's claims as data and code, asked of its own numbers and of any store.

A claim is a sentence with conditions on named cells; evidence answers for cells; a verdict says what became of the
claim. Accuracies are the best over learning rates and seeds, as in the paper's tables.
"""

from orch.analysis.claims.asking import CLAIMS, ClaimsAtScale, ask_board, ask_published, ask_store
from orch.analysis.claims.claim import Claim
from orch.analysis.claims.evidence import DEMO
from orch.analysis.claims.table import claims_table, to_dict
from orch.analysis.claims.verdict import Judgement, Verdict
from orch.analysis.claims.wording import evidence_text, verdict_text

__all__ = [
    "CLAIMS",
    "DEMO",
    "Claim",
    "ClaimsAtScale",
    "Judgement",
    "Verdict",
    "ask_board",
    "ask_published",
    "ask_store",
    "claims_table",
    "evidence_text",
    "to_dict",
    "verdict_text",
]
