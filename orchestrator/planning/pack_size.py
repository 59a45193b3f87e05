"""The number of trials to train as one pack: whether stacking changes results, and what fits. No torch.

What a pack gains is computed in `step_time.py`.
"""

import math
from dataclasses import dataclass

from orch.models.kernel import TRITON
from orch.planning.doctor_times import DoctorTimes
from orch.planning.probed import Probed
from orch.planning.step_time import kernel_of, on_cpu, speedup
from orch.sweeps.batches import FEWEST_AT_ONCE, STEPS_PER_BLOCK, TOKENS_AT_ONCE
from orch.sweeps.recipe import FLOAT32, FLOAT64
from orch.sweeps.trial import Trial

WORTH_IT = 1.2
"""Smallest speedup for which trials are packed: less is lost again in scheduling."""
COPIES_OF_DATA = 6
"""Copies of a block of training data that a GPU holds while it is drawn, as eight-byte integers."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The limits of packs on a kind of device."""

    largest_pack: int
    memory: float
    """Bytes that a pack may take."""


PACES = {
    "cpu": Pace(largest_pack=9, memory=4e9),
    # A data-centre GPU, of which a pack may take a part.
    "gpu": Pace(largest_pack=27, memory=8e9),
}


def pace_of(trial: Trial, device: str) -> Pace:
    return PACES["cpu" if on_cpu(device) else "gpu"]


def stacks_exactly(trial: Trial) -> bool:
    """Return whether the trial's numbers on a CPU are the same, bit for bit, alone and in a stack.

    They are where every trial's matrices begin at a multiple of 16 bytes and its states are a multiple of 32 numbers:
    matrix products depend on the one and exponentials on the other, in the last bit. Products over all positions, which
    layers on top of each other take where no kernel computes a whole step, were seen to need whole batches of 64 too.
    Other trials would differ by rounding, which training can amplify, so they run alone.
    """
    model = trial.model
    by_position = trial.label_interval is not None or trial.precision != FLOAT32
    rows = 64 if by_position and getattr(model, "layers", 1) > 1 else 1
    matrices = [shape for shape in model.shapes(trial.vocabulary).values() if len(shape) > 1]
    return (
        model.packs
        and all(shape[-1] % 4 == 0 for shape in matrices)
        and all(count * model.width % 32 == 0 and count % rows == 0 for count in trial.batch_sizes)
    )


def memory(trial: Trial, size: int = 1, device: str = "cpu") -> float:
    """Estimate the bytes that training a pack takes at its peak, validations and tests included."""
    if device.startswith("cpu"):
        return size * _memory_on_a_core(trial)
    model, vocabulary, num_tokens = trial.model, trial.vocabulary, trial.task.num_tokens
    # On the GPU itself one can tell whether triton is installed. A plan for another machine assumes so.
    fused = model.uses_triton(device) if device.startswith("cuda") else kernel_of(trial, device) == TRITON
    keeps_states = trial.label_interval is not None  # also in evaluation, to be read at several places
    fused = fused and not keeps_states and trial.precision == FLOAT32
    working_memory = model.gpu_kernel_memory if fused else model.working_memory

    def evaluation(num_samples: int, num_inputs: int) -> int:
        num_at_once = min(num_samples, max(FEWEST_AT_ONCE, TOKENS_AT_ONCE // (size * num_tokens(num_inputs))))
        return working_memory(vocabulary, num_at_once, num_tokens(num_inputs), training=keeps_states)

    in_training = working_memory(vocabulary, trial.batch_size, num_tokens(trial.max_inputs), training=True)
    in_evaluation = max(
        evaluation(trial.validation_samples, trial.max_inputs),
        *(evaluation(trial.test_samples, length) for length in trial.tested_lengths),
    )
    num_parameters = model.num_parameters(vocabulary)
    shapes = model.shapes(vocabulary)
    unwritten = sum(math.prod(shapes[name]) for name in model.token_tables) if fused else 0
    # A recorded step keeps its memory while the pack is evaluated, or copied because a trial leaves it.
    recorded = 4 * num_parameters - unwritten + in_training + max(in_evaluation, 3 * num_parameters)
    # Without it, the copies are stacked anew: weights, moments, and one of these twice.
    numbers = max(recorded, 7 * num_parameters)
    block = STEPS_PER_BLOCK * trial.batch_size * (num_tokens(trial.max_inputs) + 2 * math.prod(trial.label_shape))
    return size * (_num_bytes(trial) * numbers + COPIES_OF_DATA * 8 * block)


def _memory_on_a_core(trial: Trial) -> float:
    model, vocabulary = trial.model, trial.vocabulary
    num_tokens = trial.task.num_tokens(trial.max_inputs)
    num_states = max(trial.batch_size * num_tokens, trial.validation_samples) * model.width
    num_transitions = vocabulary.readable + trial.batch_size
    # Weights, gradients and two moments, and the copy of all but the gradients that a checkpoint is written from.
    numbers = 7 * model.num_parameters(vocabulary) + 16 * num_states + 2 * num_transitions * model.width**2
    return _num_bytes(trial) * numbers


def _num_bytes(trial: Trial) -> int:
    """Return the bytes of a parameter or state."""
    return 8 if trial.precision == FLOAT64 else 4


def pack_size(
    trial: Trial,
    num_available: int,
    device: str = "cpu",
    largest: int | None = None,
    probed: Probed | None = None,
    doctor_times: DoctorTimes | None = None,
) -> int:
    """Return how many of `num_available` equal-sized trials to train as one pack: 1 where packing does not help.

    `largest` is the user's limit, and `probed` what a trial of a user's own model took when it was tried.
    `doctor_times` are the times of packs of the model on the device, as `orch doctor` measured them. Packs have equal
    sizes: twelve trials make two packs of six, not nine and three.
    """
    pace = pace_of(trial, device)
    measured = 0 if probed is None or probed.memory is None else probed.memory
    most = min(largest or pace.largest_pack, num_available)
    while most > 1 and max(memory(trial, most, device), most * measured) > pace.memory:
        most -= 1
    if probed is not None and probed.stacks is not None:
        stacks = probed.stacks
    else:
        stacks, probed = stacks_exactly(trial) if on_cpu(device) else trial.model.packs, None
    if most < 2 or num_available < 2 or not stacks:
        return 1
    size = math.ceil(num_available / math.ceil(num_available / most))
    gain = speedup(trial, size, device) if probed is None else probed.speedup(size)
    if probed is None and doctor_times is not None:
        gain *= doctor_times.ratio(1) / doctor_times.ratio(size)
    return size if gain >= WORTH_IT else 1
