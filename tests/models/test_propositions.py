"""The paper's propositions: weights built as in the proofs do what the proofs say, at length 500."""

import math

import pytest
import torch

from orch import models
from orch.models import Vocabulary
from orch.sweeps.trial import make_trial
from orch.tasks import REGISTRY
from orch.tasks.sampling import Sampler
from orch.training.train import train

LENGTH = 500


def network_with(config, task, parameters):
    vocabulary = Vocabulary(task.vocabulary, task.num_readable)
    shapes = config.shapes(vocabulary)
    state = {name: parameters.get(name, torch.zeros(shape)) for name, shape in shapes.items()}
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == shapes
    return config.network()(config, vocabulary, [state]).eval()


def accuracy(network, task, length=LENGTH, num_samples=256):
    sampler = Sampler(task)
    batch = sampler.draw(sampler.generator("proposition"), num_samples, length, length)
    logits = network(batch.tokens_NT[None], batch.end_N[None])[0]
    return (logits.argmax(-1) == batch.target_N).double().mean().item()


@pytest.mark.parametrize("normalisation", ["none", "unit", "rms"])
@pytest.mark.parametrize("modulus", [2, 3, 5, 10])
def test_a_bilinear_network_simulates_any_state_machine_exactly(modulus, normalisation):
    for machine_seed in range(5):
        task = REGISTRY["state_machine"](modulus=modulus, machine_seed=machine_seed)
        machine = task.machine()
        num_states, vocabulary = len(machine.next_state), task.vocabulary
        width = max(num_states, vocabulary)
        transition = torch.zeros(width, width, width)
        for state, row in enumerate(machine.next_state):
            for token, reached in enumerate(row):
                transition[reached, state, token] = 1
        head = torch.zeros(vocabulary, width)
        for state, target in enumerate(machine.target[1:], start=1):
            head[target, state] = 1
        config = models.REGISTRY["bilinear"](width=width, eval_normalisation=normalisation)
        network = network_with(
            config,
            task,
            {
                "embedding": torch.eye(vocabulary, width),
                "initial_state": torch.eye(width)[0],
                "recurrence.transition": transition,
                "head.weight": head,
            },
        )
        assert accuracy(network, task) == 1


def rotating(task, width, angles):
    """A rotation network over one-hot embeddings: `angles[pair]` gives the angle of each symbol."""
    turn = torch.zeros(width // 2, width)
    for pair, angle in enumerate(angles):
        for symbol in range(task.num_symbols):
            turn[pair, symbol] = angle(symbol)
    initial = torch.zeros(width)
    initial[: len(angles)] = 1  # pairs are (j, j + width / 2): every vector starts along its first axis
    return {
        "embedding": torch.eye(task.vocabulary, width),
        "recurrence.angle": turn,
        "initial_state": initial,
    }


@pytest.mark.parametrize("modulus", [2, 3, 5, 10, 25, 50])
def test_a_rotation_network_adds_modulo_any_number_exactly(modulus):
    task = REGISTRY["modular_addition"](modulus=modulus)
    width = task.vocabulary + task.vocabulary % 2
    parameters = rotating(task, width, [lambda symbol: 2 * math.pi * symbol / modulus])
    head = torch.zeros(task.vocabulary, width)
    for value in range(modulus):
        head[value, 0] = math.cos(2 * math.pi * value / modulus)
        head[value, width // 2] = math.sin(2 * math.pi * value / modulus)
    network = network_with(models.REGISTRY["rotation"](width=width), task, parameters | {"head.weight": head})
    assert accuracy(network, task) == 1


@pytest.mark.parametrize(("left", "right"), [(2, 3), (3, 3), (4, 5)])
def test_a_rotation_network_tracks_products_of_cyclic_groups_exactly(left, right):
    """Z_left x Z_right: symbol s moves the two coordinates by s mod left and s // left."""
    task = REGISTRY["modular_addition"](modulus=left * right)  # its vocabulary: left * right symbols
    width = task.vocabulary + task.vocabulary % 2
    parameters = rotating(
        task,
        width,
        [
            lambda symbol: 2 * math.pi * (symbol % left) / left,
            lambda symbol: 2 * math.pi * (symbol // left) / right,
        ],
    )
    head = torch.zeros(task.vocabulary, width)
    for value in range(left * right):
        for pair, angle in enumerate((2 * math.pi * (value % left) / left, 2 * math.pi * (value // left) / right)):
            head[value, pair], head[value, pair + width // 2] = math.cos(angle), math.sin(angle)
    network = network_with(models.REGISTRY["rotation"](width=width), task, parameters | {"head.weight": head})
    sampler = Sampler(task)
    batch = sampler.draw(sampler.generator("product"), 256, LENGTH, LENGTH)
    symbols = batch.tokens_NT[:, 1:-1]
    expected = (symbols % left).sum(1) % left + left * ((symbols // left).sum(1) % right)
    logits = network(batch.tokens_NT[None], batch.end_N[None])[0]
    assert torch.equal(logits.argmax(-1), expected)


def share_that_generalises(normalisation: str, num_seeds: int = 20) -> float:
    num_generalised = 0
    for seed in range(num_seeds):
        trial = make_trial(
            "modular_addition",
            "block_diagonal",
            modulus=2,
            block_size=1,
            frozen=True,
            train_normalisation=normalisation,
            eval_normalisation=normalisation,
            train_examples=2,
            balanced=True,
            min_inputs=10,
            max_inputs=10,
            steps=1000,
            learning_rate=1e-2,
            test_length=400,
            curve_lengths=(400,),
            validation_samples=64,
            test_samples=256,
            init_seed=seed,
            data_seed=seed,
        )
        num_generalised += train(trial).ood_accuracy >= 0.95
    return num_generalised / num_seeds


@pytest.mark.thorough
def test_a_frozen_real_diagonal_learns_parity_from_two_examples_and_generalises_to_length_400(record_property, capsys):
    shares = {kind: share_that_generalises(kind) for kind in ("block", "rms")}
    record_property("share of 20 seeds that generalise to length 400", shares)
    with capsys.disabled():
        print(f" [parity from two examples, share of 20 seeds that generalise to length 400: {shares}]", end="")
    assert shares["block"] >= 0.95, "normalised per component, one example of each parity suffices for any length"
    assert 0.2 <= shares["rms"] < shares["block"], "normalised as a whole, the fastest components dominate the others"
