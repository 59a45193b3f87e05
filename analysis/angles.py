"""The angles by which a trained rotation model turns its state, read off its weights without torch.

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
    """One model's pairs, those first that its readout gives the largest weights."""

    angles_mP: Array
    harmonics_P: Array
    weights_P: Array

    @property
    def off_harmonic(self) -> float:
        """How far the harmonics of turning planes are from whole numbers, weighed as the readout does; chance: 0.25."""
        turning = self._turning_P
        size = self.weights_P[turning] ** 2
        away = np.abs(self.harmonics_P - np.round(self.harmonics_P))[turning]
        return float((size * away).sum() / size.sum()) if size.any() else math.inf

    @property
    def turning_share(self) -> float:
        """Of the readout's squared weights, the share on planes that the input 1 turns; the others stand still."""
        size = self.weights_P**2
        return float(size[self._turning_P].sum() / size.sum()) if size.any() else 0.0

    @property
    def _turning_P(self) -> NDArray[np.bool_]:
        return np.round(self.harmonics_P) % len(self.angles_mP) != 0


def angles(embedding_VH: Array, angle_PH: Array, num_inputs: int) -> Array:
    """theta of every input and pair, in radians as learned: (m, P). Inputs are the first tokens of the vocabulary."""
    return embedding_VH[:num_inputs] @ angle_PH.T


def harmonics(angles_mP: Array) -> Array:
    """theta_1 in units of 2 pi / m: whole numbers where the input 1 turns the pair by a step of the circle of m."""
    return angles_mP[1] * len(angles_mP) / (2 * math.pi)


def head_weights(head_VH: Array) -> Array:
    """How much the readout looks at each pair: the norm of its weights on the pair's two entries."""
    first, second = np.split(head_VH, 2, axis=1)
    return np.sqrt((first**2 + second**2).sum(axis=0))


def rotations(weights: Mapping[str, Array], num_inputs: int) -> Rotations:
    """From a rotation model's parameters by name."""
    theta = angles(weights["embedding"], weights["recurrence.angle"], num_inputs)
    size = head_weights(weights["head.weight"])
    order = np.argsort(-size, kind="stable")
    return Rotations(theta[:, order], harmonics(theta)[order], size[order])


def read_rotations(data: bytes, num_inputs: int, name: str) -> Rotations:
    """From the bytes of saved weights; `name` is for the message if they are not those of a rotation model."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        weights = load(data)
    except SafetensorError as error:
        raise DamagedFile(f"{name} is damaged ({error}): delete it and train again") from error
    if missing := [parameter for parameter in _NEEDED if parameter not in weights]:
        raise DamagedFile(f"{name} has no {', '.join(missing)}: check that it holds a rotation model")
    return rotations(weights, num_inputs)
