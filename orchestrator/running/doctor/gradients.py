"""Comparison of losses and gradients on a device with double precision on the CPU, from equal weights."""

from collections.abc import Sequence

import torch

from orch.running.doctor.agreement import Agreement
from orch.running.doctor.double_precision import compute, in_double, leave_out_dropout, references
from orch.running.doctor.examined_trials import pack_of
from orch.running.doctor.rounding import loss_rounding
from orch.sweeps.trial import Trial
from orch.tasks.sampling import Batch
from orch.training.capture import one_operation_at_a_time
from orch.training.evaluation import EvaluationSets, evaluate
from orch.training.train import Training

STEPS = (0, 1, 40, 41)
"""Steps at which a small trial is compared: with its initial weights and after some training, on two batches each."""
FEWER_STEPS = (0, 1, 10, 11)
NUM_TRIALS = 2


def compare_with_double(trials_and_steps: Sequence[tuple[Trial, Sequence[int]]], device: str) -> str:
    """Compare packs of trials like these with double precision before the given steps of their training."""
    agreement = Agreement()
    for trial, steps in trials_and_steps:
        with one_operation_at_a_time():
            training = Training(pack_of(trial, NUM_TRIALS), device)
        if device != "cpu":
            leave_out_dropout(training.network)
        for step in steps:
            training.advance(stop_at=step)
            _compare_gradients(agreement, training)
        _compare_answers(agreement, training)
    return agreement.verdict("double precision on the CPU")


def _compare_gradients(agreement: Agreement, training: Training) -> None:
    expected = references(training.network, training.next_batch())
    found = compute(training.network, training.next_batch())
    for one, reference in zip(found, expected, strict=True):
        agreement.compare(_when(training), one, reference.exact, reference.rounding)


def _compare_answers(agreement: Agreement, training: Training) -> None:
    """Compare the losses of a test on longer sequences, which other code computes than training."""
    trial, network = training.members[0].trial, training.network
    batch = EvaluationSets(trial, torch.device("cpu")).of_length(trial.test_length)
    found = evaluate(network, Batch(*(part.to(training.device) for part in batch)))
    allowed = loss_rounding(batch.tokens_NT.shape[1])
    for one, other in zip(found, evaluate(in_double(network), batch), strict=True):
        difference = abs(one.loss - other.loss) / abs(other.loss)
        agreement.note(f"the loss of a test {_when(training)}", difference, allowed)


def _when(training: Training) -> str:
    return f"after {training.step} steps at width {training.network.config.width}"
