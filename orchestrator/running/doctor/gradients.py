"""Comparison of losses and gradients on a device with double precision on the CPU, from equal weights."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from orch.models.network import Network, PerTrial
from orch.models.wrapped_module import State
from orch.running.doctor.agreement import Agreement, rounding
from orch.running.doctor.examined_trials import pack_of
from orch.sweeps.trial import Trial
from orch.tasks.sampling import Batch
from orch.training.capture import one_operation_at_a_time
from orch.training.evaluation import EvaluationSets, evaluate
from orch.training.train import Training, loss_and_gradients

STEPS = (0, 1, 40, 41)
"""Steps at which a small trial is compared: with its initial weights and after some training, on two batches each."""
FEWER_STEPS = (0, 1, 10, 11)
NUM_TRIALS = 2


def compare_with_double(trials_and_steps: Sequence[tuple[Trial, Sequence[int]]], device: str) -> str:
    """Compare packs of trials like these with double precision before the given steps of their training."""
    first = trials_and_steps[0][0]
    agreement = Agreement(rounding(first.task.num_tokens(first.max_inputs)))
    answers = Agreement(rounding(first.task.num_tokens(first.test_length)))
    for trial, steps in trials_and_steps:
        with one_operation_at_a_time():
            training = Training(pack_of(trial, NUM_TRIALS), device)
        if device != "cpu":
            _leave_out_dropout(training.network)
        for step in steps:
            training.advance(stop_at=step)
            _compare(agreement, training)
        _compare_answers(answers, training)
    answers.verdict("double precision on the CPU")
    return agreement.verdict("double precision on the CPU")


def _compare(agreement: Agreement, training: Training) -> None:
    network, batch = training.network, training.next_batch()
    exact = _in_double(network)
    found, expected = _by_trial(network, batch), _by_trial(exact, [part.cpu() for part in batch])
    for (loss, gradients), (exact_loss, exact_gradients) in zip(found, expected, strict=True):
        agreement.compare_losses(_when(training), loss, exact_loss)
        agreement.compare_gradients(_when(training), gradients, exact_gradients)


def _compare_answers(agreement: Agreement, training: Training) -> None:
    """Compare the losses of a test on longer sequences, which other code computes than training."""
    trial, network = training.members[0].trial, training.network
    batch = EvaluationSets(trial, torch.device("cpu")).of_length(trial.test_length)
    found = evaluate(network, Batch(*(part.to(training.device) for part in batch)))
    for one, other in zip(found, evaluate(_in_double(network), batch), strict=True):
        agreement.compare_losses(f"of a test {_when(training)}", one.loss, other.loss)


def _when(training: Training) -> str:
    return f"after {training.step} steps at width {training.network.config.width}"


def _in_double(network: Network) -> Network:
    """Return a copy on the CPU, in double precision, with the plain kernel."""
    members = [_on_host(network.member(position)) for position in range(network.num_trials)]
    exact = type(network)(network.config, network.vocabulary, members).double()
    exact.noise_seed = network.noise_seed
    if isinstance(network, PerTrial) and next(network.parameters()).device.type != "cpu":
        _leave_out_dropout(exact)
    return exact


def _by_trial(network: Network, batch: Sequence[Tensor]) -> list[tuple[float, State]]:
    """Return the loss and the gradients of each trial."""
    loss_K, gradients = loss_and_gradients(network, *batch)
    stacked = {
        name: gradient if isinstance(gradient, Tensor) else gradient.written_out().view_as(network[name])
        for name, gradient in gradients.items()
    }
    return [
        (loss, {name: gradient[position].cpu() for name, gradient in stacked.items()})
        for position, loss in enumerate(loss_K.tolist())
    ]


def _on_host(state: State) -> State:
    return {name: tensor.cpu() for name, tensor in state.items()}


def _leave_out_dropout(network: Network) -> None:
    """Turn dropout off in a user's module: a GPU draws other random numbers than a CPU."""
    if not isinstance(network, PerTrial):
        return
    for module in network.wrapped.module.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        elif isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
            module.dropout = 0.0
