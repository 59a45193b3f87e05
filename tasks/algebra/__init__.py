"""The algebra of a task, and what theory predicts from it for families of models. No torch.

>>> from orch.tasks import REGISTRY
>>> parity = analyse(REGISTRY["parity_check"]())
>>> parity.is_group, parity.num_elements
(True, 2)
>>> predict(parity, Family.POSITIVE_DIAGONAL).verdict, predict(parity, Family.SIGNED_DIAGONAL).verdict
(<Verdict.CANNOT: 'cannot'>, <Verdict.CAN: 'can'>)
"""

from orch.tasks.algebra.analysis import Algebra, analyse
from orch.tasks.algebra.prediction import REFERENCES, Family, Prediction, Transitions, Verdict, predict

__all__ = ["REFERENCES", "Algebra", "Family", "Prediction", "Transitions", "Verdict", "analyse", "predict"]
