"""The claims of the paper, and of the field, judged by the results of a store.

A claim is a sentence with conditions on named cells, evidence has the accuracies of cells, and a verdict says whether
the evidence supports the claim. Accuracies are the best over learning rates and seeds, as in the paper's tables. The
sureness of a verdict is what most seeds say, each asked alone at the chosen learning rates.
"""

from orch.analysis.claims.claim import Claim
from orch.analysis.claims.evidence import ATLAS, DEMO
from orch.analysis.claims.judgement import Judgement
from orch.analysis.claims.judging import CLAIMS, FIELD_CLAIMS, ClaimsAtScale, judge_board, judge_store
from orch.analysis.claims.missing_seeds import MissingSeeds, missing_seeds, sweep_file
from orch.analysis.claims.table import claims_table, to_dict, verdicts_table
from orch.analysis.claims.verdict import Verdict
from orch.analysis.claims.wording import evidence_text, sureness_text, verdict_text

__all__ = [
    "ATLAS",
    "CLAIMS",
    "DEMO",
    "FIELD_CLAIMS",
    "Claim",
    "ClaimsAtScale",
    "Judgement",
    "MissingSeeds",
    "Verdict",
    "claims_table",
    "evidence_text",
    "judge_board",
    "judge_store",
    "missing_seeds",
    "sureness_text",
    "sweep_file",
    "to_dict",
    "verdict_text",
    "verdicts_table",
]
