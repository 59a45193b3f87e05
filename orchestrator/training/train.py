"""Training a pack: trials that differ in seeds, rate and task, stacked in one program. One trial is a pack.

A `Training` can stop after any step and be saved trial by trial. Each trial can continue in another process, alone or
in another pack, to the same numbers.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from orch.core.errors import InvalidSettings
from orch.models.kernel import COMPILED, COMPILED_2, PLAIN, TRITON, compiler_found, triton_found
from orch.models.network import Network, State
from orch.models.vocabularies import stack_padded
from orch.sweeps.recipe import FLOAT32, FLOAT64, check_device
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.trial import Trial
from orch.tasks import Task
from orch.tasks.sampling import Batch, Sampler, derive_seed, majority
from orch.training.capture import find_recorder
from orch.training.data import Step, training_data
from orch.training.evaluation import EvaluationSets, Score, evaluate, parts_to_evaluate
from orch.training.gradients import loss_and_gradients
from orch.training.optimisers import make_optimiser
from orch.training.snapshot import Member, Snapshot, initial_snapshot
from orch.training.stacked_optimiser import StackedOptimiser
from orch.training.static_step import StaticSteps

_LARGEST_KEPT_BYTES = 31 << 20


class Training:
    """A pack of trials in training."""

    def __init__(self, trials: Sequence[Trial], device: torch.device | str = "cpu"):
        for trial in trials:
            trial.check()
        kernel = trials[0].kernel_name(str(device))
        self._start([initial_snapshot(trial, kernel) for trial in trials], device)

    @classmethod
    def resume(cls, snapshots: Sequence[Snapshot], device: torch.device | str = "cpu") -> "Training":
        """Continue from snapshots that were taken at the same step, from one pack or several."""
        training = cls.__new__(cls)
        training._start(snapshots, device)
        return training

    def _start(self, snapshots: Sequence[Snapshot], device: torch.device | str) -> None:
        assert len({each.step for each in snapshots}) == 1, "only trials at the same step can share a stack"
        if len({each.trial.packable() for each in snapshots}) != 1:
            raise InvalidSettings(
                [
                    "trials in one pack may differ only in learning rate, seeds, the amounts of the recipe and (most"
                    " models) task: train these alone"
                ]
            )
        check_device((each.trial for each in snapshots), str(device))
        snapshots = _neighbours(snapshots)
        self.device = torch.device(device)
        self.kernel = _kernel_to_go_on_with(snapshots, self.device)
        use_full_precision()
        # glibc returns large freed blocks to the system, and a pack would have them mapped again at every step. Once it
        # has seen a block of the largest size that raises its threshold freed, it keeps such blocks.
        torch.empty(_LARGEST_KEPT_BYTES, dtype=torch.uint8)
        self.members = [Member(each.trial, list(each.curve), each.seconds) for each in snapshots]
        self.step = snapshots[0].step
        num_losses = min(len(each.losses) for each in snapshots)
        self._first_step = self.step - num_losses
        self.results: list[Result] = []
        self.warnings: list[str] = []
        """What a user should know about how these trials train."""
        by_task = {each.trial.task: each.trial for each in snapshots}
        self._sets = {task: EvaluationSets(trial, self.device) for task, trial in by_task.items()}
        self._samplers = [Sampler(task, self.device) for task in by_task]
        self._stack(snapshots)
        if num_losses:
            seen = torch.tensor([each.losses[-num_losses:] for each in snapshots], dtype=self._losses_KS.dtype)
            self._losses_KS[:, self._num_seen - num_losses : self._num_seen] = seen.to(self.device)

    def _stack(self, snapshots: Sequence[Snapshot]) -> None:
        trials = [each.trial for each in snapshots]
        first = trials[0]
        kind = first.model.network()
        parameters = [each.parameters for each in snapshots]
        vocabularies = [trial.vocabulary for trial in trials]
        self.network: Network = kind(first.model, vocabularies, parameters).to(self.device)
        self.network.kernel, self.network.precision = self.kernel, first.precision
        self.network.reuse_gradient_memory()
        self.network.noise_seed = self._noise_seed
        self._trained = self.network.trained_names
        trained = {name: self.network[name] for name in self._trained}
        num_rows = None
        if self.network.vocabularies.mixed:
            num_rows = [[len(each.parameters[name]) for name in self._trained] for each in snapshots]
        recorder = find_recorder(self.device) if self.network.replayable else None
        self._optimiser = make_optimiser(trials, list(trained.values()), num_rows, self.kernel, recorder is not None)
        if self.step > 0:
            self._optimiser.set_step(self.step)
            for which in ("first", "second"):
                for name, stack in self._named(getattr(self._optimiser, which)):
                    stack.copy_(stack_padded([getattr(each, which)[name] for each in snapshots]))
        self._data = training_data(trials, *self._samplers)
        numbers = torch.float64 if first.precision == FLOAT64 else torch.float32
        self._losses_KS = torch.zeros(len(trials), first.eval_every, device=self.device, dtype=numbers)
        self._update = functools.partial(update, self.network, trained, self._optimiser)
        self._static: StaticSteps | None = None
        if recorder:
            self._static = StaticSteps(self._update, self._data, self._losses_KS, recorder, self.warnings)

    def _noise_seed(self, position: int) -> int:
        """Return the seed of the random numbers that a trial draws in the coming step."""
        trial = self.members[position].trial
        return derive_seed("noise", trial.init_seed, trial.data_seed, self.step)

    @property
    def finished(self) -> bool:
        return not self.members

    def advance(self, on_step: Callable[[int], bool | None] | None = None, stop_at: int | None = None) -> bool:
        """Train to the next validation and remove finished trials with their results.

        It ends earlier at `stop_at`, or when `on_step` returns True. Return whether the validation was reached.
        """
        trial = self.members[0].trial
        due = min(self.step - self.step % trial.eval_every + trial.eval_every, trial.steps)
        until = due if stop_at is None else min(due, stop_at)
        started = time.perf_counter()
        while self.step < until:
            self._train_step()
            if on_step is not None and on_step(self.step):
                break
        if self.step < due:
            self._count_time(started)
            return False
        self._validate(started)
        return True

    def _train_step(self) -> None:
        if self._static:
            self._static.take(self.step)
        else:
            loss_K = self._update(*self._data.batch(self.step))
            self._losses_KS[:, self.step % self._losses_KS.shape[1]] = loss_K
        self.step += 1

    def _validate(self, started: float) -> None:
        scores = self.validation_scores()
        # Checkpoints from before losses were kept lack those before a resume: the mean is over what is known.
        last = (self.step - 1) % self._losses_KS.shape[1] + 1
        seen = self._losses_KS[:, max(0, last - (self.step - self._first_step)) : last]
        train_losses = seen.mean(1).tolist()
        self._count_time(started)
        stop_reasons = {}
        for position, (member, score, train_loss) in enumerate(zip(self.members, scores, train_losses, strict=True)):
            point = CurvePoint(
                step=self.step,
                train_loss=train_loss,
                validation_loss=score.loss,
                validation_accuracy=member.trial.task.normalise(score.accuracy),
                seconds=member.seconds,
                validation_accuracy_all=_normalised(member.trial.task, score.accuracy_all),
            )
            member.curve.append(point)
            if not (math.isfinite(score.loss) and math.isfinite(train_loss)):
                stop_reasons[position] = StopReason.DIVERGED
            elif score.loss < member.trial.stop_loss or 0 < member.trial.stop_accuracy <= point.validation_accuracy:
                stop_reasons[position] = StopReason.EARLY_STOP
            elif self.step >= member.trial.steps:
                stop_reasons[position] = StopReason.BUDGET
        if stop_reasons:
            self._remove_finished(stop_reasons)

    def _remove_finished(self, stop_reasons: dict[int, StopReason]) -> None:
        """Test the trials at these positions, add their results, and stack the other trials anew."""
        self._static = None  # a recorded step keeps its memory, which tests and the new stack need
        self.results += self._test(stop_reasons)
        staying = [position for position in range(len(self.members)) if position not in stop_reasons]
        snapshots = [self.snapshot(position) for position in staying]
        self.members = [self.members[position] for position in staying]
        if snapshots:
            del self.network, self._optimiser, self._update
            self._stack(snapshots)

    def _test(self, stop_reasons: dict[int, StopReason]) -> list[Result]:
        """Return the results of trials that finish together. They are tested as a stack, on sets drawn once."""
        started = time.perf_counter()
        trial, network = self.members[0].trial, self.network
        leaving = [self.members[position].trial for position in stop_reasons]
        if len(stop_reasons) < len(self.members):
            parameters = [network.member(position) for position in stop_reasons]
            network = type(network)(trial.model, [each.vocabulary for each in leaving], parameters)
            network.kernel, network.precision = self.kernel, trial.precision
        tasks = [each.task for each in leaving]
        scores, best_guess = {}, {}
        for length in trial.tested_lengths:
            sets = {task: self._sets[task].of_length(length) for task in dict.fromkeys(tasks)}
            scores[length] = self._scores(network, tasks, sets)
            best_guess[length] = {task: task.normalise(majority(task, length)) for task in sets}
        share = (time.perf_counter() - started) / len(stop_reasons)
        results = []
        for place, (position, reason) in enumerate(stop_reasons.items()):
            member = self.members[position]
            member.seconds += share
            task = member.trial.task
            of_all_labels = {length: _normalised(task, of_all[place].accuracy_all) for length, of_all in scores.items()}
            results.append(
                Result(
                    trial=member.trial,
                    stop_reason=reason,
                    steps=self.step,
                    seconds=member.seconds,
                    curve=tuple(member.curve),
                    test_accuracy={length: task.normalise(of_all[place].accuracy) for length, of_all in scores.items()},
                    majority={length: by_task[task] for length, by_task in best_guess.items()},
                    parameters={name: tensor.clone() for name, tensor in self.network.member(position).items()},
                    test_accuracy_all={length: each for length, each in of_all_labels.items() if each is not None},
                )
            )
        return results

    def validation_scores(self) -> list[Score]:
        """Return the present score of each trial on its validation set."""
        sets = {task: sets.validation for task, sets in self._sets.items()}
        return self._scores(self.network, [member.trial.task for member in self.members], sets)

    def _scores(self, network: Network, tasks: Sequence[Task], sets: Mapping[Task, Batch]) -> list[Score]:
        """Return the score of each stacked trial on the set of its task."""
        return [
            score
            for trials in parts_to_evaluate(tasks, self.device)
            for score in evaluate(network.part(trials), sets[tasks[trials.start]])
        ]

    def _count_time(self, started: float) -> None:
        """Add to each trial its share of the pack's time."""
        share = (time.perf_counter() - started) / len(self.members)
        for member in self.members:
            member.seconds += share

    def next_batch(self) -> Step:
        """Return the batch of the coming step."""
        return self._data.batch(self.step)

    @property
    def _num_seen(self) -> int:
        """The number of steps since the last validation."""
        return self.step % self._losses_KS.shape[1]

    def last_losses(self) -> list[float]:
        """Return the loss of each trial in the latest step, before its update."""
        losses: list[float] = self._losses_KS[:, (self.step - 1) % self._losses_KS.shape[1]].tolist()
        return losses

    def _losses_since_validation(self, position: int) -> list[float]:
        last = self._num_seen
        if not last:
            return []  # without asking a GPU
        known: list[float] = self._losses_KS[position, max(0, last - (self.step - self._first_step)) : last].tolist()
        return known

    def snapshot(self, position: int = 0) -> Snapshot:
        """Return a copy of one trial in its present state."""
        return self.view(position).map_tensors(lambda kind, name, tensor: tensor.clone())

    def _named(self, stacks: Sequence[torch.Tensor]) -> Iterable[tuple[str, torch.Tensor]]:
        """Pair a state of the optimiser with the names of its parameters; one that SGD lacks has no pairs."""
        return zip(self._trained, stacks, strict=True) if stacks else ()

    def view(self, position: int = 0) -> Snapshot:
        """Return one trial in its present state, without a copy of its tensors: the next step changes them."""
        member = self.members[position]

        def views(stacks: Sequence[torch.Tensor]) -> State:
            return {name: self.network.own(name, stack.detach(), position) for name, stack in self._named(stacks)}

        return Snapshot(
            trial=member.trial,
            step=self.step,
            seconds=member.seconds,
            curve=list(member.curve),
            parameters=self.network.member(position),
            first=views(self._optimiser.first),
            second=views(self._optimiser.second),
            kernel=self.kernel,
            losses=self._losses_since_validation(position),
        )


def use_full_precision() -> None:
    """Switch TF32 off: it keeps three digits of a matrix product, and a recurrence multiplies its errors 500 times."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def update(
    network: Network,
    parameters: Mapping[str, Tensor],
    optimiser: StackedOptimiser,
    tokens_KBT: Tensor,
    end_KB: Tensor,
    target_KB: Tensor,
) -> Tensor:
    """Update the parameters on a batch, and return the loss of each trial before that."""
    loss_K, gradients = loss_and_gradients(network, tokens_KBT, end_KB, target_KB)
    optimiser.update([gradients[name] for name in parameters])
    return loss_K


def _normalised(task: Task, accuracy: float | None) -> float | None:
    return None if accuracy is None else task.normalise(accuracy)


def _neighbours(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Return snapshots in an order in which those with the same vocabulary, and of them those with the same task, meet.

    Such trials share operations.
    """
    tasks = list(dict.fromkeys(each.trial.task for each in snapshots))
    return sorted(snapshots, key=lambda each: (each.trial.vocabulary, tasks.index(each.trial.task)))


def _kernel_to_go_on_with(snapshots: Sequence[Snapshot], device: torch.device) -> str:
    """Return the kernel that the trials began with, if it runs on the device; otherwise the one that does."""
    kernels, trial = {each.kernel for each in snapshots}, snapshots[0].trial
    assert len(kernels) == 1, "only trials with the same kernel can share a stack"
    (kernel,) = kernels
    numba = "cpu", compiler_found, "install numba (pip install numba)"
    needs: dict[str, tuple[str, Callable[[], bool], str]] = {
        COMPILED: numba,
        COMPILED_2: numba,
        TRITON: ("cuda", triton_found, "install triton (pip install triton) and a C compiler"),
    }
    if kernel not in needs:
        return trial.model.plain_kernel(device.type) if trial.precision == FLOAT32 else PLAIN
    its_device, found, remedy = needs[kernel]
    if device.type != its_device:
        return trial.kernel_name(device.type)
    if not found():
        raise InvalidSettings(
            [
                f"this trial began with {kernel} kernels, which cannot run here: {remedy}, or delete the trial's"
                " checkpoint to train it anew"
            ]
        )
    return kernel


def train(
    trial: Trial, device: torch.device | str = "cpu", on_step: Callable[[int], bool | None] | None = None
) -> Result:
    """Train one trial in this process, from start to end, and return its result.

    `device` is a torch device, such as "cuda". `on_step` is called after every step with the number of steps done.
    """
    training = Training([trial], device)
    while not training.finished:
        training.advance(on_step)
    return training.results[0]
