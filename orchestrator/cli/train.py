"""`orch train`: train one trial in this process."""

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orch.cli._options import OutputPath, protocol_option, store_option
from orch.cli._output import echo, echo_data
from orch.cli._settings import SettingsCommand, given_settings, known_definitions, model_option, task_option
from orch.cli._sweeps import file_argument, read_definitions
from orch.cli._tables import print_rows
from orch.cli._training_display import Display, Interrupt
from orch.core.counted import counted
from orch.core.errors import InvalidSettings
from orch.core.interruption import exit_code
from orch.core.safetensors_header import read_orch_header
from orch.running.options import RunOptions
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions, described_task
from orch.sweeps.memory import check_memory, found_device
from orch.sweeps.protocols import find_protocol
from orch.sweeps.recipe import check_device
from orch.sweeps.result import Result, StopReason
from orch.sweeps.trial import Trial, make_trial, with_matching_lengths

if TYPE_CHECKING:
    from rich.text import Text

_LONGEST_NAME = 200
"""Bytes; file systems allow 255, and a file is first written under a longer name."""
STEPS_AT_ONCE = 10
"""Ctrl-C takes effect after at most this many steps."""


@click.command(cls=SettingsCommand)
@file_argument
@model_option
@task_option
@click.option("--trial", "trial_id", metavar="ID", help="Train this trial of a recorded sweep; store nothing.")
@store_option
@protocol_option
@click.option("--seed", type=int, help="Set --init-seed and --data-seed at once.")
@click.option("--epochs", type=int, help="Set --steps as passes over --train-examples.  [1000]")
@click.option(
    "--device", default="auto", show_default=True, help="cpu, cuda, or auto, which uses a GPU if there is one."
)
@click.option("--threads", default=1, show_default=True, help="Number of CPU threads.")
@click.option(
    "--save", type=OutputPath(dir_okay=False, path_type=Path), help="Save the trained model to this file (safetensors)."
)
@click.option(
    "--checkpoint",
    type=OutputPath(dir_okay=False, path_type=Path),
    help="Save the unfinished trial to this file, and continue from it if it exists.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as one JSON object.")
def train(
    file: str | None,
    model: str | None,
    task: str | None,
    trial_id: str | None,
    store: str,
    protocol: str | None,
    seed: int | None,
    epochs: int | None,
    device: str,
    threads: int,
    save: Path | None,
    checkpoint: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train one trial in this process and test it.

    Settings have the paper's names; their defaults are shown in brackets. An accuracy of 0 is chance, 1 is perfect.
    With a file of your own, its models and tasks can be named too, and their settings are options:
    orch train FILE.py --help lists them. If only one of --test-length and --curve-lengths is given, no length beyond it
    is tested.

    \b
    Example: orch train --model bilinear --task modular_addition --modulus 5 --steps 1000
    """
    if file is not None and trial_id is not None:
        raise InvalidSettings(["--trial takes its code from the store: leave out the file"])
    read_definitions(file)  # the settings were read from it already; this refuses what is not a file
    settings = given_settings(options)
    if protocol is not None:
        settings = find_protocol(protocol).merged(settings, "--")
    trial = _chosen(model, task, trial_id, store, seed, epochs, settings)
    _check_files(save, checkpoint, threads)
    check_memory([trial], device.partition(":")[0])
    check_device([trial], found_device(device))

    import torch

    from orch.training.checkpoints import load_snapshot, save_model, save_snapshot
    from orch.training.train import Training, use_full_precision
    from orch.usercode.global_state import StateChanges

    torch.set_num_threads(threads)
    use_full_precision()
    changes = StateChanges(since_start=True)
    device = _pick_device(device)
    if checkpoint is not None and checkpoint.exists():
        snapshot = load_snapshot(checkpoint, trial.definitions)
        if snapshot.trial != trial:
            raise InvalidSettings([f"{checkpoint} holds another trial ({snapshot.trial.label}): name another file"])
        training = Training.resume([snapshot], device)
    else:
        training = Training([trial], device)
    display = Display(trial, training.step, quiet=as_json)
    saved_at = time.monotonic()
    with display, Interrupt() as interrupt:
        while not training.finished and not interrupt.asked:
            validated = training.advance(display.step, stop_at=training.step + STEPS_AT_ONCE)
            if validated and not training.finished:
                display.point(training.members[0].curve[-1])
                if checkpoint is not None and time.monotonic() - saved_at > RunOptions.checkpoint_seconds:
                    save_snapshot(checkpoint, training.snapshot())
                    saved_at = time.monotonic()
    if not training.finished:
        if checkpoint is None:
            echo(f"interrupted at step {training.step:,}; with --checkpoint FILE it could continue", err=True)
        else:
            save_snapshot(checkpoint, training.snapshot())
            echo(f"interrupted at step {training.step:,}; the same command continues from {checkpoint}", err=True)
        sys.exit(exit_code())
    result = training.results[0]
    for change in changes.find():
        echo(f"warning: your code {change}", err=True)
    if save is not None:
        save_model(save, result)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    if as_json:
        echo_data(json.dumps(_finite(result.summary())))
    else:
        _print_result(result, save, file)


def _chosen(
    model: str | None,
    task: str | None,
    trial_id: str | None,
    store: str,
    seed: int | None,
    epochs: int | None,
    settings: dict[str, Any],
) -> Trial:
    if trial_id is None:
        if model is None or task is None:
            raise InvalidSettings(["name what to train: --model and --task, or --trial with the id of a sweep's trial"])
        return resolve_trial(model, task, seed, epochs, settings, known_definitions())
    if model or task or settings or seed is not None or epochs is not None:
        raise InvalidSettings(["--trial names a whole trial: leave out --model, --task, --protocol and all settings"])
    from orch.running.requests import find_trial
    from orch.store import Store

    return find_trial(Store.open(store), trial_id)


def resolve_trial(
    model: str,
    task: str,
    seed: int | None,
    epochs: int | None,
    settings: dict[str, Any],
    definitions: Definitions = BUILT_IN_DEFINITIONS,
) -> Trial:
    """Return the trial that the options describe, or raise one error with all its problems."""
    if seed is not None:
        settings = {"init_seed": seed, "data_seed": seed} | settings
    examples = settings.get("train_examples", 0)
    problems = []
    if epochs is not None and not examples:
        problems.append("--epochs counts passes over a fixed training set: give --train-examples too, or use --steps")
    if epochs is not None and "steps" in settings:
        problems.append("--epochs and --steps both set the budget: give one")
    if epochs is not None and epochs < 1:
        problems.append(f"--epochs {epochs} is not enough: use 1 or more")
    if examples > 0:
        settings.setdefault("min_inputs", settings.get("max_inputs", 10))
        if "steps" not in settings:
            batches = math.ceil(examples / max(1, settings.get("batch_size", 64)))
            settings["steps"] = (epochs or 1000) * batches
    try:
        task, settings = described_task(task, settings, definitions)
        trial = make_trial(task, model, definitions, **with_matching_lengths(settings))
    except InvalidSettings as error:
        raise InvalidSettings(problems + error.problems) from None
    if problems:
        raise InvalidSettings(problems)
    return trial


def _check_files(save: Path | None, checkpoint: Path | None, threads: int) -> None:
    """Raise an error before hours of work, not after, if a file cannot be written."""
    problems = []
    if threads < 1:
        problems.append(f"--threads {threads} is not enough: use 1 or more")
    elif threads > (num_cores := os.cpu_count() or 1):
        problems.append(f"--threads {threads} is more than this machine has cores: use at most {num_cores}")
    files = (("--save", save, "result", "a saved model"), ("--checkpoint", checkpoint, "step", "a checkpoint"))
    for option, path, kind, thing in files:
        if path is not None and (path.name == "" or len(os.fsencode(path.name)) > _LONGEST_NAME):
            problems.append(f"{option} {str(path)!r} is no name of a file: give one such as model.safetensors")
        elif path is not None and path.is_dir():
            problems.append(f"{option} {path} is a folder: name a file")
        elif path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            problems.append(f"{option} {path} cannot be written: make the folder {path.parent} first")
        elif path is not None and path.exists() and _holds_other_data(path, kind):
            problems.append(f"{option} {path} is there and is not {thing} of orch: name another file, or delete it")
    if save is not None and checkpoint is not None and save.absolute() == checkpoint.absolute():
        problems.append("--save and --checkpoint name one file: name two")
    if problems:
        raise InvalidSettings(problems)


def _holds_other_data(path: Path, kind: str) -> bool:
    """Return whether writing to a file would destroy something that orch did not write as this kind of file."""
    if not path.is_file():
        return False  # such as /dev/null
    return path.stat().st_size > 0 and kind not in read_orch_header(path)


def _pick_device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidSettings(["--device cuda: this machine has no usable GPU: use --device cpu"])
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError):
        raise InvalidSettings([f"--device {name!r} is unknown here: use cpu, cuda or auto"]) from None
    return name


def _print_result(result: Result, save: Path | None, file: str | None) -> None:
    trial = result.trial
    parameters = trial.model.num_parameters(trial.vocabulary)
    how = {
        StopReason.EARLY_STOP: f"validation loss below {trial.stop_loss:g}"
        if result.curve[-1].validation_loss < trial.stop_loss
        else f"validation accuracy of {trial.stop_accuracy:g} reached",
        StopReason.BUDGET: "step budget used up",
        StopReason.DIVERGED: "diverged: the loss is no longer a number",
    }[result.stop_reason]
    lengths = [f"{trial.min_inputs}–{trial.max_inputs}", *map(str, result.test_accuracy)]
    scores = map(_score, (result.validation_accuracy, *result.test_accuracy.values()))
    name = "accuracy" if result.validation_accuracy_all is None else "accuracy at the end"
    rows: list[dict[str, Any]] = [{"inputs": name} | dict(zip(lengths, scores, strict=True))]
    if result.validation_accuracy_all is not None:
        scores = map(_score, (result.validation_accuracy_all, *result.test_accuracy_all.values()))
        rows.append({"inputs": "accuracy at all labels"} | dict(zip(lengths, scores, strict=True)))
    if any(value > 0.005 for value in result.majority.values()):
        majority = ["", *(f"{value:.3f}" for value in result.majority.values())]
        rows.append({"inputs": "commonest answer"} | dict(zip(lengths, majority, strict=True)))
    rate = f"learning rate {trial.learning_rate:g}"
    echo(f"{trial.label}, {parameters:,} parameters, {rate}, trial {trial.id}", bold=True)
    print_rows(rows, title=f"{counted(result.steps, 'step')} in {result.seconds:.1f} s ({how})")
    if save is not None:
        echo(f"saved to {save}; load it with", dim=True)
        own = "" if file is None else f', name_sweeps(["{file}"]).catalogue'
        imported = [] if file is None else ["from orch.usercode import name_sweeps"]
        lines = ["from orch.training.checkpoints import load_model", *imported]
        for line in [*lines, f'network, trial = load_model("{save}"{own})']:
            echo(f"  {line}")


def _score(value: float) -> "Text":
    from rich.text import Text

    return Text(f"{value:.3f}", "green" if value >= 0.95 else "yellow" if value >= 0.5 else "red", justify="right")


def _finite(value: Any) -> Any:
    """Replace NaN and infinity by None, because JSON has neither."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
