"""The process in which a user's models and tasks are tried: `python -m orch.usercode.probe_process`.

It reads one JSON object from its input and writes a JSON line to its output when it begins and ends each trial. What
the user's code prints goes to the standard error. `orch.usercode.probe` starts it, and explains how it died.
"""

import dataclasses
import faulthandler
import json
import math
import os
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from orch.core.errors import OrchError
from orch.models.network import Network, PerTrial
from orch.models.stacking import NUM_TRIED
from orch.planning.probed import NUM_PACKED, Probed
from orch.sweeps.trial import Trial
from orch.tasks.sampling import Batch, Sampler
from orch.training.data import training_data
from orch.training.evaluation import EvaluationSets, evaluate, rows_at_once
from orch.training.train import Training
from orch.usercode.catalogue import make_catalogue
from orch.usercode.code import UserCode
from orch.usercode.line_watch import Watch
from orch.usercode.loading import CODE_FOLDER
from orch.usercode.probe_death import CRASH, PLACE, describe_death

_MOST_STEPS, _ENOUGH_SECONDS = 9, 0.5


class Wrong(Exception):
    """A result that no trial can use, as a sentence without its subject."""


def main() -> None:
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")

    def report(**values: Any) -> None:
        print(json.dumps(values), file=channel, flush=True)

    trace = TraceFiles(Path(request["folder"]), request["seconds"])
    watch = Watch(trace.place_file)
    with trace.limited(), watch.watching(while_loading=True):
        catalogue = make_catalogue(tuple(UserCode.from_dict(values) for values in request["code"]))
    report(loaded=[problem.format("the file") for problem in watch.problems])
    watch.problems.clear()
    for number, values in enumerate(request["trials"]):
        trial = Trial.from_dict(values, catalogue)
        trace.clear()
        report(began=number)
        # A fork of this process, which has computed nothing yet, is a clean start for each trial, in no time.
        pid = os.fork()
        if pid == 0:
            with trace.limited():
                problems, probed = try_trial(trial, watch)
            report(ended=number, problems=problems, probed=None if probed is None else dataclasses.asdict(probed))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if code := os.waitstatus_to_exitcode(status):
            report(ended=number, problems=[trace.death(subject_of(trial), code)], probed=None)


class TraceFiles:
    """Files in which a process that hangs or dies leaves the line of the user's code at which it does."""

    def __init__(self, folder: Path, seconds: float):
        self._seconds = seconds
        self._crash = (folder / CRASH).open("w+")
        self.place_file = os.open(folder / PLACE, os.O_RDWR | os.O_CREAT)
        faulthandler.enable(self._crash, all_threads=False)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """End this process if it takes longer than the limit."""
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._crash)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def clear(self) -> None:
        for file in (self._crash.fileno(), self.place_file):
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)

    def death(self, subject: str, code: int) -> str:
        """Describe how a process that tried the subject ended."""
        crash = os.pread(self._crash.fileno(), 1 << 20, 0).decode(errors="replace")
        return describe_death(crash, os.pread(self.place_file, 300, 0).decode(), subject, code, self._seconds)


def subject_of(trial: Trial) -> str:
    """Return the words by which problems name what was tried."""
    if type(trial.model).__module__.startswith("orch."):
        return f"task {trial.task.name}"
    return f"model {trial.model.name}"


def try_trial(trial: Trial, watch: Watch) -> tuple[list[str], Probed | None]:
    """Take a few training steps and evaluate a trial; return the problems as sentences, or what it took."""
    subject = subject_of(trial)
    try:
        with warnings.catch_warnings():
            probed = _measure(trial, watch)
        problems = [problem.format(subject) for problem in watch.problems]
        return problems, None if problems else probed
    except Wrong as error:
        problems = [str(error)]
    except (Exception, SystemExit) as error:
        problems = _raised(error, subject)
    # What it changed is the likely cause of what it raised.
    return [problem.format(subject) for problem in watch.problems] or problems, None


def _raised(error: BaseException, subject: str) -> list[str]:
    if isinstance(error, OrchError):
        return str(error).splitlines()
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(CODE_FOLDER)]
    message = " ".join(str(error).split())[:300]
    what = f"{subject} raises {type(error).__name__}" + (f" ({message})" if message else "")
    if not frames:
        return [f"{what}: fix it"]
    return [f"{frames[-1].filename.rpartition('/')[2]}, line {frames[-1].lineno}: {what}: fix it"]


def _measure(trial: Trial, watch: Watch) -> Probed:
    short = dataclasses.replace(trial, steps=64, eval_every=64, stop_loss=0.0)
    memory_before = _reset_peak_memory()
    with watch.watching():
        _check_targets(trial)
        training = Training([short])
        _check_step(training, short)
    training.advance(stop_at=training.step + 1)
    step_seconds = _step_seconds(training)
    memory_after = _peak_memory()
    sets = EvaluationSets(trial, torch.device("cpu"))
    validation_seconds = _timed(lambda: evaluate(training.network, sets.validation))
    tests_seconds = sum(_test_seconds(training, sets, trial, length) for length in trial.tested_lengths)
    probed = Probed(
        step_seconds=step_seconds,
        validation_seconds=validation_seconds,
        tests_seconds=tests_seconds,
        memory=None if memory_before is None or memory_after is None else max(0.0, memory_after - memory_before),
    )
    return _with_stacking(probed, short, training) if isinstance(training.network, PerTrial) else probed


def _check_targets(trial: Trial) -> None:
    """Raise `Wrong` unless every target of the task is a token. Otherwise the model would be blamed for it."""
    task = trial.task
    for target in task.machine().target:
        if not 0 <= target < task.vocabulary:
            raise Wrong(f"task {task.name} has the target {target}: return a token, from 0 to {task.vocabulary - 1}")


def _check_step(training: Training, trial: Trial) -> None:
    """Make one training step and one evaluation, and raise `Wrong` unless their numbers are finite."""
    network = training.network
    place = f"{network.wrapped.place}: " if isinstance(network, PerTrial) else ""
    unsaved = {name: tensor.clone() for name, tensor in _unsaved(training)}
    tokens, ends, _ = training_data([trial], Sampler(trial.task)).batch(0)
    for is_training, when in ((True, "in training"), (False, "in evaluation")):
        network.train(is_training)
        with torch.no_grad():
            logits = network(tokens, ends)
        if not torch.isfinite(logits).all():
            raise Wrong(
                f"{place}{subject_of(trial)} returns NaN or infinity {when}: check its divisions, roots and logarithms"
            )
        is_module = isinstance(network, PerTrial)
        if is_module and not is_training and not _ignores_what_follows(network, tokens, ends, logits):
            raise Wrong(
                f"{place}{subject_of(trial)} reads what follows the end of a sample, which is padding: make it causal,"
                " or take the ends, as in forward(tokens, ends), and mask what follows them"
                if trial.label_interval is None
                else f"{place}{subject_of(trial)} reads what follows a label, which gives the answer away: make it"
                " causal, or train with supervision final"
            )
    network.train()
    training.advance(stop_at=1)
    state = network.member(0)
    if broken := [name for name, tensor in state.items() if not torch.isfinite(tensor).all()]:
        raise Wrong(
            f"{place}{subject_of(trial)} has NaN or infinity in {', '.join(broken)} after one step: check its gradient,"
            " for example of a root or a norm at 0"
        )
    for name, tensor in _unsaved(training):
        if name in unsaved and not torch.equal(tensor, unsaved[name]):
            raise Wrong(
                f"{place}{subject_of(trial)} changes its tensor {name}, which is not saved with a trial: register it"
                f" as a buffer, self.register_buffer({name.rpartition('.')[2]!r}, …)"
            )


def _ignores_what_follows(network: Network, tokens: torch.Tensor, ends: torch.Tensor, logits: torch.Tensor) -> bool:
    """Return whether the logits stay the same, but for rounding, if the tokens after each sample's end change.

    If labels stand also within samples, the tokens after the first label change too.
    """
    places = ends if ends.dim() > 2 else ends.unsqueeze(-1)
    logits = logits.view(*places.shape, -1)
    others = torch.randint(network.vocabulary.readable, tokens.shape, generator=torch.Generator().manual_seed(1))
    for cut in (places[..., :1], places[..., -1:])[-min(2, places.shape[-1]) :]:
        with torch.no_grad():
            changed = network(torch.where(torch.arange(tokens.shape[-1]) > cut, others, tokens), ends).view_as(logits)
        is_before = places <= cut
        if not torch.allclose(changed[is_before], logits[is_before], rtol=1e-3, atol=1e-4):
            return False
    return True


def _unsaved(training: Training) -> list[tuple[str, torch.Tensor]]:
    network = training.network
    return list(network.wrapped.unsaved()) if isinstance(network, PerTrial) else []


def _test_seconds(training: Training, sets: EvaluationSets, trial: Trial, length: int) -> float:
    """Estimate the seconds of the test at a length from the first of its parts."""
    batch = sets.of_length(length)
    rows = rows_at_once(batch.tokens_NT.shape[1], training.network, "cpu", math.prod(batch.end_N.shape[1:]))
    part = Batch(*(each[:rows] for each in batch))
    return _timed(lambda: evaluate(training.network, part)) * max(1.0, trial.test_samples / rows)


def _with_stacking(probed: Probed, trial: Trial, training: Training) -> Probed:
    """Add whether trials share one program, and a timed step of a pack of them if they do."""
    shape = trial.batch_size, trial.task.num_tokens(trial.max_inputs)
    network = training.network
    assert isinstance(network, PerTrial)
    found = network.stacking(trial.model, trial.vocabulary, shape, "cpu", NUM_TRIED, trial.label_shape)
    if not found.stacked:
        return dataclasses.replace(probed, stacks=False, reason=found.reason)
    trials = [dataclasses.replace(trial, init_seed=seed, data_seed=seed) for seed in range(NUM_PACKED)]
    pack = Training(trials)
    pack.advance(stop_at=2)
    return dataclasses.replace(probed, stacks=True, pack_seconds=_step_seconds(pack))


def _step_seconds(training: Training) -> float:
    """Return the median seconds of a few steps, of two if they are slow."""
    seconds: list[float] = []
    while len(seconds) < 2 or (len(seconds) < _MOST_STEPS and sum(seconds) < _ENOUGH_SECONDS):
        seconds.append(_timed(lambda: training.advance(stop_at=training.step + 1)))
    return statistics.median(seconds)


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _reset_peak_memory() -> float | None:
    """Reset the peak memory of this process, and return the bytes it has now; None where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _peak_memory()


def _peak_memory() -> float | None:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return None if line is None else 1024.0 * int(line.split()[1])


if __name__ == "__main__":
    main()
