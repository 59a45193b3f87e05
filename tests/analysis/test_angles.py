"""Angles are read off saved weights as the network itself computes them."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from orch.analysis.angles import Rotations, angles, harmonics, head_weights, read_rotations, rotations
from orch.core.errors import DamagedFile
from orch.models.network import build
from orch.models.rotation.network import Network
from orch.training.checkpoints import model_bytes
from orch.training.train import train
from tests.small import small_trial


@pytest.fixture(scope="module")
def trained():
    return train(small_trial("rotation", modulus=10))


def test_angles_are_those_of_the_network(trained) -> None:
    trial = trained.trial
    network = Network(trial.model, trial.vocabulary, [trained.parameters])
    weights = {name: tensor.numpy() for name, tensor in trained.parameters.items()}
    found = angles(weights["embedding"], weights["recurrence.angle"], 10)
    with torch.no_grad():
        expected = network.angles(network["embedding"][:, : trial.vocabulary.readable])[0, :10]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-7)


def test_a_pair_is_turned_by_its_angle() -> None:
    trial = small_trial("rotation", modulus=10)
    network = build(trial.model, trial.vocabulary, [torch.Generator().manual_seed(0)])
    weights = {name: tensor.numpy() for name, tensor in network.member(0).items()}
    theta = angles(weights["embedding"], weights["recurrence.angle"], 10)
    seen = []
    network.head = lambda h_KBH: seen.append(h_KBH) or h_KBH  # type: ignore[method-assign]
    with torch.no_grad():
        network.eval()(torch.tensor([[[3]]]), torch.tensor([[0]]))
    before, after = weights["initial_state"], seen[0][0, 0].numpy()
    num_pairs = len(before) // 2
    turned = np.angle((after[:num_pairs] + 1j * after[num_pairs:]) / (before[:num_pairs] + 1j * before[num_pairs:]))
    np.testing.assert_allclose(turned, theta[3], atol=1e-5)


def test_a_harmonic_is_the_angle_of_one_in_steps_of_the_circle() -> None:
    inputs = np.arange(10)[:, None]
    theta = 2 * np.pi / 10 * np.array([3, -1, 0.5]) * inputs
    np.testing.assert_allclose(harmonics(theta), [3, -1, 0.5])


def test_pairs_are_ordered_by_the_readouts_weights_on_both_of_their_entries() -> None:
    head = np.zeros((4, 6))
    head[0, 1], head[2, 4] = 3, 4  # pair 1: entries 1 and 4
    head[1, 3] = 4.5  # pair 0: entries 0 and 3
    np.testing.assert_allclose(head_weights(head), [4.5, 5, 0])
    weights = {"embedding": np.eye(4, 6), "recurrence.angle": np.arange(18.0).reshape(3, 6), "head.weight": head}
    found = rotations(weights, num_inputs=2)
    np.testing.assert_allclose(found.weights_P, [5, 4.5, 0])
    np.testing.assert_allclose(found.angles_mP, [[6, 0, 12], [7, 1, 13]])
    np.testing.assert_allclose(found.harmonics_P, np.array([7, 1, 13]) / np.pi)


def test_saved_weights_are_read(trained) -> None:
    found = read_rotations(model_bytes(trained), 10, "weights")
    assert isinstance(found, Rotations)
    assert found.angles_mP.shape == (10, trained.trial.model.width // 2)
    assert (np.diff(found.weights_P) <= 0).all()


def test_damaged_weights_and_those_of_another_model_are_named() -> None:
    with pytest.raises(DamagedFile, match="weights of x is damaged"):
        read_rotations(b"nonsense", 10, "weights of x")
    other = model_bytes(train(small_trial("bilinear", steps=10)))
    with pytest.raises(DamagedFile, match=r"has no recurrence\.angle"):
        read_rotations(other, 10, "weights of x")


def test_reading_angles_needs_no_torch(trained, tmp_path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(model_bytes(trained))
    program = (
        "import sys, pathlib; from analysis.angles import read_rotations\n"
        f"read_rotations(pathlib.Path({str(path)!r}).read_bytes(), 10, 'x')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
