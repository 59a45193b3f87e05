"""The number of trials to train as one pack: the speedup of stacking, and whether it changes results. No torch.

A step of one trial is the calls that start its operations, and their work. A pack makes the calls once for all trials,
and does the work of each: it gains where calls take longer than work, that is, for small models.
"""

import math
from dataclasses import dataclass

from orch.planning.probed import Probed
from orch.sweeps.batches import FEWEST_AT_ONCE, STEPS_PER_BLOCK, TOKENS_AT_ONCE
from orch.sweeps.trial import Trial

WORTH_IT = 1.2
"""Smallest speedup for which trials are packed: less is lost again in scheduling."""
COPIES_OF_DATA = 6
"""Copies of a block of training data that a GPU holds while it is drawn, as eight-byte integers."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The seconds that the parts of a training step take on a kind of device."""

    per_position: float
    """The calls at one position, forwards and backwards, and its share of all other calls."""
    per_trial: float
    """The calls for each trial of a pack, such as those of the optimiser."""
    per_operation: float
    """One multiplication or addition of a matrix product."""
    per_parameter: float
    """The gradient, moments and update of one parameter, bound by memory."""
    per_state: float
    """Elementwise work on one component of a state at one position, bound by memory."""
    largest_pack: int
    memory: float
    """Bytes that a pack may take."""


PACES = {
    # Fits packs of 1 to 9 of all models at widths 16, 64, 128 and 256 on one core of a cloud server, mostly within 20%.
    "cpu": Pace(0.12e-3, 0.08e-3, 1 / 80e9, 3.4e-9, 4.5e-9, largest_pack=9, memory=4e9),
    # A CPU with compiled kernels. Fits their training steps in docs/packs.md within 30% at width 256.
    "compiled": Pace(8e-6, 0.1e-3, 1 / 200e9, 0.8e-9, 1e-9, largest_pack=9, memory=4e9),
    # Not measured: a data-centre GPU, of which a pack may take a part.
    "gpu": Pace(0.5e-3, 0.05e-3, 1 / 5e12, 3e-11, 2e-11, largest_pack=27, memory=8e9),
}


def pace_of(trial: Trial, device: str) -> Pace:
    return PACES[("compiled" if trial.model.compiled else "cpu") if device.startswith("cpu") else "gpu"]


def speedup(trial: Trial, size: int, device: str = "cpu") -> float:
    """Return the training steps per second of all trials in a pack of `size`, relative to one trial alone."""
    if not trial.model.packs:
        return 1.0
    return size * step_seconds(trial, 1, device) / step_seconds(trial, size, device)


def step_seconds(trial: Trial, size: int, device: str = "cpu") -> float:
    """Predict the seconds of a training step of a pack of equal trials."""
    model, vocabulary = trial.model, trial.vocabulary
    pace, num_tokens = pace_of(trial, device), trial.task.num_tokens(trial.max_inputs)
    calls = model.sequential_positions(num_tokens) * pace.per_position
    num_states = trial.batch_size * num_tokens * model.width
    # A training step takes about three forward passes.
    operations = 3 * model.forward_flops(vocabulary, trial.batch_size, num_tokens)
    work = pace.per_trial + operations * pace.per_operation + num_states * pace.per_state
    work += model.num_parameters(vocabulary) * pace.per_parameter
    return calls + size * work


def stacks_exactly(trial: Trial) -> bool:
    """Return whether the trial's numbers on a CPU are the same, bit for bit, alone and in a stack.

    They are where every trial's matrices begin at a multiple of 16 bytes and its states are a multiple of 32 numbers:
    matrix products depend on the one and exponentials on the other, in the last bit. Other trials would differ by
    rounding, which training can amplify, so they run alone.
    """
    model = trial.model
    matrices = [shape for shape in model.shapes(trial.vocabulary).values() if len(shape) > 1]
    return (
        model.packs
        and all(shape[-1] % 4 == 0 for shape in matrices)
        and all(count * model.width % 32 == 0 for count in trial.batch_sizes)
    )


def memory(trial: Trial, size: int = 1, device: str = "cpu") -> float:
    """Estimate the bytes that training a pack takes at its peak, validations and tests included."""
    if device.startswith("cpu"):
        return size * _memory_on_a_core(trial)
    model, vocabulary, num_tokens = trial.model, trial.vocabulary, trial.task.num_tokens

    def evaluation(num_samples: int, num_inputs: int) -> int:
        num_at_once = min(num_samples, max(FEWEST_AT_ONCE, TOKENS_AT_ONCE // (size * num_tokens(num_inputs))))
        return model.working_memory(vocabulary, num_at_once, num_tokens(num_inputs), training=False)

    in_training = model.working_memory(vocabulary, trial.batch_size, num_tokens(trial.max_inputs), training=True)
    in_evaluation = max(
        evaluation(trial.validation_samples, trial.max_inputs),
        *(evaluation(trial.test_samples, length) for length in trial.tested_lengths),
    )
    num_parameters = model.num_parameters(vocabulary)
    # A recorded step keeps its memory while the pack is evaluated, or copied because a trial leaves it.
    numbers = 4 * num_parameters + in_training + max(in_evaluation, 3 * num_parameters)
    block = STEPS_PER_BLOCK * trial.batch_size * (num_tokens(trial.max_inputs) + 2)
    return size * (4 * numbers + COPIES_OF_DATA * 8 * block)


def _memory_on_a_core(trial: Trial) -> float:
    model, vocabulary = trial.model, trial.vocabulary
    num_tokens = trial.task.num_tokens(trial.max_inputs)
    num_states = max(trial.batch_size * num_tokens, trial.validation_samples) * model.width
    num_transitions = vocabulary.readable + trial.batch_size
    # Weights, gradients and two moments, and the copy of all but the gradients that a checkpoint is written from.
    return 4 * (7 * model.num_parameters(vocabulary) + 16 * num_states + 2 * num_transitions * model.width**2)


def pack_size(
    trial: Trial,
    num_available: int,
    device: str = "cpu",
    largest: int | None = None,
    probed: Probed | None = None,
) -> int:
    """Return how many of `num_available` equal-sized trials to train as one pack: 1 where packing does not help.

    `largest` is the user's limit, and `probed` what a trial of a user's own model took when it was tried. Packs have
    equal sizes: twelve trials make two packs of six, not nine and three.
    """
    pace = pace_of(trial, device)
    measured = 0 if probed is None or probed.memory is None else probed.memory
    most = min(largest or pace.largest_pack, num_available)
    while most > 1 and max(memory(trial, most, device), most * measured) > pace.memory:
        most -= 1
    if probed is not None and probed.stacks is not None:
        stacks = probed.stacks
    else:
        stacks, probed = stacks_exactly(trial) if pace is not PACES["gpu"] else trial.model.packs, None
    if most < 2 or num_available < 2 or not stacks:
        return 1
    size = math.ceil(num_available / math.ceil(num_available / most))
    gain = speedup(trial, size, device) if probed is None else probed.speedup(size)
    return size if gain >= WORTH_IT else 1
