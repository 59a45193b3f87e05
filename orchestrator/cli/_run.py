"""What commands that run trials share: their options, and what they print at the end."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from orch.cli._options import Command, on_option
from orch.running.options import RunOptions

SMALL_SWEEP = 40
"""Sweeps of up to this many trials end with a table of their results."""
DEFAULTS = RunOptions()


def worker_options(command: Command) -> Command:
    """Add the options of commands that train in worker processes."""
    return _with(
        command,
        click.option("--max-hours", type=float, help="Stop cleanly after this long."),
        click.option("--cpus", type=int, help="Use this many CPU cores of this machine. [all]"),
        click.option(
            "--checkpoint-seconds",
            default=DEFAULTS.checkpoint_seconds,
            show_default=True,
            help="Time between checkpoints.",
        ),
        click.option(
            "--hang-seconds",
            default=DEFAULTS.hang_seconds,
            show_default=True,
            help="End a worker without progress after this.",
        ),
        click.option(
            "--weights-mb",
            default=DEFAULTS.weights_limit / 1e6,
            show_default=True,
            help="Keep trained weights up to this size.",
        ),
        click.option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default=DEFAULTS.device,
            show_default=True,
            help="What trials train on; auto: GPUs where there are any.",
        ),
        click.option(
            "--gpus-per-trial",
            default=DEFAULTS.gpus_per_trial,
            show_default=True,
            help="GPUs per pack of trials; 0.25 puts four on one.",
        ),
        click.option("--verbose", is_flag=True, help="Print the driver's log."),
        click.option("--quiet", is_flag=True, help="Print only the summary."),
    )


def run_options(command: Command) -> Command:
    """Add the options of commands that run sweeps."""
    return _with(
        worker_options(command),
        on_option,
        click.option("--detach", is_flag=True, help="With --on: return as soon as trials are running."),
        click.option("--yes", is_flag=True, help="Do not ask before starting more than a day of work."),
        click.option("--join", is_flag=True, help="Share the work with a driver that is already on this store."),
        click.option(
            "--pack", type=int, help="Most trials to train in one program; 1 trains each alone. [as many as pay]"
        ),
        click.option(
            "--cheapest-first", is_flag=True, help="Short trials first, for a --max-hours that ends too soon."
        ),
        click.option(
            "--on-finish", metavar="COMMAND", help="Run this at the end; ORCH_FINISHED and others say what was."
        ),
    )


def _with(command: Command, *options: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def check_options(given: dict[str, Any]) -> None:
    """Raise one error that lists every invalid option."""
    from orch.core.errors import InvalidSettings

    problems = [
        f"--{name.replace('_', '-')} {given[name]} is not enough: use more than 0"
        for name in ("max_hours", "cpus", "checkpoint_seconds", "hang_seconds", "gpus_per_trial", "pack")
        if given.get(name) is not None and given[name] <= 0
    ]
    if given.get("detach") and not given["on"]:
        problems.append("--detach is for sweeps that run elsewhere: add --on FILE, or leave it out")
    if given.get("detach") and given["quiet"]:
        problems.append("--detach waits for the first line of progress, which --quiet withholds: leave one of them out")
    if problems:
        raise InvalidSettings(problems)


def make_options(given: dict[str, Any]) -> RunOptions:
    """Turn the options of a command, which may lack some, into those of the library."""
    return RunOptions(
        join=given.get("join", DEFAULTS.join),
        max_hours=given["max_hours"],
        num_cpus=given["cpus"],
        checkpoint_seconds=given["checkpoint_seconds"],
        hang_seconds=given["hang_seconds"],
        weights_limit=int(given["weights_mb"] * 1e6),
        gpus_per_trial=given["gpus_per_trial"],
        device=given["device"],
        pack=given.get("pack"),
        cheapest_first=given.get("cheapest_first", DEFAULTS.cheapest_first),
        on_finish=given.get("on_finish"),
        verbose=given["verbose"],
        quiet=given["quiet"],
        confirm=lambda question: given["yes"] or (sys.stdin.isatty() and click.confirm(question)),
    )


def run(requests: Sequence[Any], store_location: str, given: dict[str, Any]) -> None:
    """Run the requests and print the outcome. The exit code is 0 if all is done and 3 if something is left."""
    from orch.running.progress import duration
    from orch.running.run_sweeps import run_sweeps
    from orch.store import Store

    options = make_options(given)

    def say(text: str) -> None:
        if not given["quiet"]:
            click.echo(text, err=True)

    opened = Store.open(store_location)
    summary = run_sweeps(requests, opened, options, say)
    if not summary.finished and not summary.failed and not summary.left and not summary.stopped:
        click.echo("nothing to do: every trial has its result" if not summary.waiting else "nothing can start yet")
    else:
        click.echo(f"{summary.finished:,} trials finished in {duration(summary.seconds)}")
    if summary.failed:
        kinds = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(summary.failed.items()))
        click.echo(f"not finished: {kinds}. orch failures shows why; orch resume tries them again")
    if summary.waiting:
        click.echo(f"{summary.waiting:,} trials wait for results of others: orch plan shows which")
    if summary.stopped:
        click.echo(f"stopped: {summary.stopped}; {summary.left:,} trials are left: orch resume continues")
    if len(summary.trials) <= SMALL_SWEEP:
        from orch.analysis.length_table import TITLE, length_rows
        from orch.cli._tables import print_rows

        if rows := length_rows(opened, summary.trials.keys(), summary.trials):
            print_rows(rows, title=TITLE)
    if summary.stopped == "interrupted":
        sys.exit(130)
    if summary.failed or summary.left:
        sys.exit(3)
