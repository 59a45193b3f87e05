"""The angles by which a trained rotation model turns its state, computed from its weights without torch.

Shapes: m inputs, P = H/2 pairs of state entries, V tokens, H entries of the state and of an embedding. Pair j is the
plane of entries j and j + P, and an input x turns it by theta(x)_j, where theta(x) = W x.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orch.core.errors import DamagedFile

Array = NDArray[np.floating]

_NEEDED = ("embedding", "recurrence.angle", "head.weight")


@dataclass(frozen=True, slots=True)
class Rotations:
    """The pairs of one model, sorted by the weight that the readout gives them."""

    angles_mP: Array
    harmonics_P: Array
    weights_P: Array

    @property
    def off_harmonic(self) -> float:
        """Mean distance of turning planes' harmonics from whole numbers, weighted as in the readout; by chance 0.25."""
        turning = self._turning_P
        size = self.weights_P[turning] ** 2
        distance = np.abs(self.harmonics_P - np.round(self.harmonics_P))[turning]
        return float((size * distance).sum() / size.sum()) if size.any() else math.inf

    @property
    def turning_share(self) -> float:
        """Share of the readout's squared weights that lies on planes that the input 1 turns."""
        size = self.weights_P**2
        return float(size[self._turning_P].sum() / size.sum()) if size.any() else 0.0

    @property
    def _turning_P(self) -> NDArray[np.bool_]:
        turning: NDArray[np.bool_] = np.round(self.harmonics_P) % len(self.angles_mP) != 0
        return turning


def angles(embedding_VH: Array, angle_PH: Array, num_inputs: int) -> Array:
    """Return theta of every input and pair, in radians: (m, P). Inputs are the first tokens of the vocabulary."""
    theta_mP: Array = embedding_VH[:num_inputs] @ angle_PH.T
    return theta_mP


def harmonics(angles_mP: Array) -> Array:
    """Return theta_1 in units of 2 pi / m, the steps of a circle of m: whole numbers if the input 1 turns by steps."""
    harmonics_P: Array = angles_mP[1] * len(angles_mP) / (2 * math.pi)
    return harmonics_P


def head_weights(head_VH: Array) -> Array:
    """Return the weight of each pair in the readout: the norm of the weights on its two entries."""
    first, second = np.split(head_VH, 2, axis=1)
    norm_P: Array = np.sqrt((first**2 + second**2).sum(axis=0))
    return norm_P


def rotations(weights: Mapping[str, Array], num_inputs: int) -> Rotations:
    """Compute the rotations from the parameters of a rotation model by name."""
    theta = angles(weights["embedding"], weights["recurrence.angle"], num_inputs)
    size = head_weights(weights["head.weight"])
    order = np.argsort(-size, kind="stable")
    return Rotations(theta[:, order], harmonics(theta)[order], size[order])


def read_rotations(data: bytes, num_inputs: int, name: str) -> Rotations:
    """Read the rotations from saved weights; `name` is what an error message calls them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        weights = load(data)
    except SafetensorError as error:
        raise DamagedFile(f"{name} is damaged ({error}): delete it and train again") from error
    if missing := [parameter for parameter in _NEEDED if parameter not in weights]:
        raise DamagedFile(f"{name} has no {', '.join(missing)}: check that it holds a rotation model")
    return rotations(weights, num_inputs)
