"""What the `network.py` of a model imports: the base classes of networks, and how initial parameters are drawn."""

from orch.models.initialisation import normal, parameters_like_torch, uniform
from orch.models.per_trial import PerTrial
from orch.models.stacked_network import Network, build, mean_of_labels, per_trial_loss
from orch.models.wrapped_module import State

__all__ = [
    "Network",
    "PerTrial",
    "State",
    "build",
    "mean_of_labels",
    "normal",
    "parameters_like_torch",
    "per_trial_loss",
    "uniform",
]
