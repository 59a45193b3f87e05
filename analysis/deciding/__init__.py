"""The order of trials by information: run next what is most likely to settle an open claim or cell.

Each open claim or cell has an expected cost until it is settled: the estimated seconds of the trials that it still
needs, each weighted by the probability that it is needed after those before it. What is cheapest to settle comes first,
which settles the most in any time (the rule of the weighted shortest expected processing time, Rothkopf 1966). What is
settled needs no trials, so the rest of its trials is left out.
"""

from orch.analysis.deciding.decider import KINDS, Decider, check_deciding
from orch.analysis.deciding.values import cell_values, claim_values

__all__ = ["KINDS", "Decider", "cell_values", "check_deciding", "claim_values"]
