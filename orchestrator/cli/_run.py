"""The options of commands that run trials, and the summary that they print at the end."""

import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from orch.cli._numbers import check_bounded
from orch.cli._options import Command, on_option
from orch.cli._output import echo
from orch.cli._tables import print_rows
from orch.core.counted import counted
from orch.core.errors import InvalidSettings
from orch.core.interruption import exit_code
from orch.core.printable import printable
from orch.running.options import AUTO, RunOptions
from orch.running.progress import duration

if TYPE_CHECKING:
    from orch.store import Store
    from orch.sweeps.trial import Trial

MOST_ROWS = 40
"""Runs end with a table of their results if it has at most this many rows."""
DEFAULTS = RunOptions()
POSITIVE = (
    *("max_hours", "max_dollars", "dollars_per_hour", "cpus", "checkpoint_seconds", "hang_seconds"),
    *("gpus_per_trial", "pack"),
)
"""Options that must be more than 0."""


class NumberOrAuto(click.ParamType[float | str, Any]):
    """A number, or the word auto."""

    name = "number|auto"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float | str:
        if value == AUTO:
            return AUTO
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto", parameter, context)
        check_bounded(number, context, parameter)
        return number


def worker_options(command: Command) -> Command:
    """Add the options of commands that train in worker processes."""
    return _with(
        command,
        click.option("--max-hours", type=float, help="Stop cleanly after this many hours."),
        click.option(
            "--max-dollars",
            type=float,
            help="Stop cleanly when the machines that are alive have cost this much since the start of the run.",
        ),
        click.option(
            "--dollars-per-hour",
            type=float,
            help="Price of one machine, each that is alive counted.  [list prices, on a cluster of AWS]",
        ),
        click.option(
            "--cpus",
            type=int,
            help="CPU cores to use.  [all of this machine; for a Slurm task, one for each trial that its GPUs hold]",
        ),
        click.option(
            "--checkpoint-seconds",
            default=DEFAULTS.checkpoint_seconds,
            show_default=True,
            help="Seconds between checkpoints of a trial.",
        ),
        click.option(
            "--hang-seconds",
            default=DEFAULTS.hang_seconds,
            show_default=True,
            help="End a worker that has made no progress for so many seconds.",
        ),
        click.option(
            "--weights-mb",
            default=DEFAULTS.weights_limit / 1e6,
            show_default=True,
            help="Store trained weights up to this size.",
        ),
        click.option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default=DEFAULTS.device,
            show_default=True,
            help="Device to train on; auto uses GPUs where there are any.",
        ),
        click.option(
            "--gpus-per-trial",
            type=NumberOrAuto(),
            default=DEFAULTS.gpus_per_trial,
            show_default=True,
            help="GPUs for each pack of trials; with 0.25, four packs share a GPU, and with auto as many as its memory"
            " holds.",
        ),
        click.option("--verbose", is_flag=True, help="Print the driver's log."),
        click.option("--quiet", is_flag=True, help="Print only the summary."),
    )


def run_options(command: Command) -> Command:
    """Add the options of commands that run sweeps here, or on the cluster of a launcher file."""
    return _with(
        sweep_options(command),
        on_option,
        click.option("--detach", is_flag=True, help="With --on: return as soon as trials are running."),
        click.option("--yes", is_flag=True, help="Do not ask before starting more than a day of work."),
        click.option("--join", is_flag=True, help="Share the work with a driver that is already on this store."),
    )


def sweep_options(command: Command) -> Command:
    """Add the options that say how the trials of sweeps are run, wherever that is."""
    return _with(
        worker_options(command),
        click.option(
            "--pack", type=int, help="Most trials to train in one program; 1 trains each alone.  [the fastest number]"
        ),
        click.option(
            "--cheapest-first", is_flag=True, help="Run short trials first, if --max-hours does not suffice for all."
        ),
        click.option(
            "--decide",
            type=click.Choice(["claims", "cells"]),
            help="Run next the trials that are most likely to settle an open claim of the paper, or an open cell (one"
            " model on one task), and leave out those that settle nothing.",
        ),
        click.option(
            "--confidence",
            type=float,
            metavar="SHARE",
            help="With --decide: settled once it is so sure that most seeds agree, such as 0.95.  [settled by the best"
            " over learning rates and seeds]",
        ),
        click.option(
            "--on-finish",
            metavar="COMMAND",
            help="Run this shell command at the end, with the outcome in ORCH_FINISHED and others.",
        ),
    )


def _with(command: Command, *options: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def check_options(given: dict[str, Any]) -> None:
    """Raise one error that lists every invalid option."""
    problems = [
        f"--{name.replace('_', '-')} {given[name]} is not enough: use more than 0"
        for name in POSITIVE
        if isinstance(given.get(name), (int, float)) and given[name] <= 0
    ]
    share = given["gpus_per_trial"]
    if share != AUTO and share > 1 and share % 1:
        problems.append(f"--gpus-per-trial {share:g} is not a share or a whole number of GPUs: use 1 or less")
    if given["weights_mb"] < 0:
        problems.append(f"--weights-mb {given['weights_mb']} is negative: use 0 to store no weights")
    if given.get("detach") and not given["on"]:
        problems.append("--detach needs a cluster: add --on FILE, or leave it out")
    if given.get("detach") and given["quiet"]:
        problems.append("--detach waits for the first line of progress, which --quiet suppresses: leave one out")
    confidence = given.get("confidence")
    if confidence is not None and not given["decide"]:
        problems.append("--confidence says when --decide has settled something: add --decide claims, or leave it out")
    if confidence is not None and not 0.5 <= confidence < 1:
        problems.append(f"--confidence {confidence:g} is not between 0.5 and 1: use 0.95, for example")
    if given.get("decide") and given["cheapest_first"]:
        problems.append("--decide and --cheapest-first are two orders: leave one out")
    if given["max_dollars"] is not None and not _has_price(given):
        problems.append(
            "--max-dollars needs the price of the machines, which is not known here: add --dollars-per-hour"
        )
    if problems:
        raise InvalidSettings(problems)


def _has_price(given: dict[str, Any]) -> bool:
    """Return whether the machines that the command would run on have a price."""
    from orch.cluster.launcher import read_launcher
    from orch.cluster.meter import make_meter
    from orch.cluster.prices import hourly_cost

    if given["dollars_per_hour"] is None and given.get("on"):
        return hourly_cost(read_launcher(given["on"]), 1) is not None
    return make_meter(given["dollars_per_hour"]) is not None


def make_options(given: dict[str, Any]) -> RunOptions:
    """Turn the options of a command into those of the library. `orch search` has only some of them."""
    from orch.cluster.meter import make_meter

    same_name = {field.name: given[field.name] for field in dataclasses.fields(RunOptions) if field.name in given}
    same_name["dollars_per_hour"] = make_meter(given["dollars_per_hour"])
    return RunOptions(
        **same_name,
        num_cpus=given["cpus"],
        weights_limit=int(given["weights_mb"] * 1e6),
        confirm=lambda question: given["yes"] or (sys.stdin.isatty() and click.confirm(printable(question))),
    )


def run(requests: Sequence[Any], store_location: str, given: dict[str, Any]) -> None:
    """Run the requests and print the outcome. The exit code is 0 if all is done and 3 if something is left."""
    from orch.analysis.deciding import Decider
    from orch.running.run_sweeps import run_sweeps
    from orch.running.session import warnings_about
    from orch.store import Store

    def say(text: str) -> None:
        if not given["quiet"]:
            echo(text, err=True)

    opened = Store.open(store_location)
    decider = Decider(given["decide"], requests, opened, given["confidence"]) if given["decide"] else None
    summary = run_sweeps(requests, opened, make_options(given), say, decider)
    if summary.left_out:
        trials = counted(summary.left_out, "trial")
        echo(f"left out: {trials} that no open {given['decide'].removesuffix('s')} needs")
    if not summary.finished and not summary.failed and not summary.left and not summary.stopped:
        done = "nothing to do: every trial has its result" if not summary.left_out else "nothing to do: all is settled"
        echo("nothing can start yet" if summary.waiting and not summary.left_out else done)
    else:
        echo(f"{counted(summary.finished, 'trial')} finished in {duration(summary.seconds)}")
    if summary.failed:
        kinds = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(summary.failed.items()))
        echo(f"not finished: {kinds}. orch failures shows why; orch resume retries them")
    if summary.waiting:
        echo(f"waiting: {counted(summary.waiting, 'trial')}, for results of other trials: orch plan shows which")
    if summary.stopped:
        echo(f"stopped: {summary.stopped}; {counted(summary.left, 'trial')} left: orch resume continues")
    for line in warnings_about(summary.changes):
        echo(line, err=True)
    _print_results(opened, summary.trials, [name for request in requests for name in request.sweeps])
    if summary.stopped == "interrupted":
        sys.exit(exit_code())
    if summary.failed or summary.left:
        sys.exit(3)


def _print_results(store: "Store", trials: "Mapping[str, Trial]", names: Sequence[str]) -> None:
    """Print the accuracy of each cell by length, or the command that shows the results if there are too many."""
    from orch.analysis.length_table import length_table

    found = length_table(store, trials.keys(), trials)
    if len(found.rows) > MOST_ROWS:
        place = shlex.join([*dict.fromkeys(names), "--store", store.location])
        echo(f"{counted(len(found.rows), 'row')} of results: orch results {place} shows them")
    elif found.rows:
        print_rows(found.rows, title=found.title)
