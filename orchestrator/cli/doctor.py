"""`orch doctor`: check that a device computes correctly, and measure its speed."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from orch.cli._options import writable_store_option
from orch.cli._output import echo, echo_data, echo_laid_out
from orch.cli._sweeps import file_argument, read_definitions
from orch.core.errors import InvalidSettings
from orch.models import ModelConfig

if TYPE_CHECKING:
    from orch.running.doctor import Finding


@click.command()
@file_argument
@writable_store_option
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="How long to time the training steps of each model in each size of pack.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one finding per line.")
def doctor(file: str | None, store: str, device: str, seconds: float, as_json: bool) -> None:
    """Check that this machine or cluster computes correctly.

    A worker compares losses and gradients of every model with double precision on the CPU, packs with single trials,
    resumed trials with uninterrupted ones and, on a GPU, recorded steps with ordinary ones. It allows what rounding
    explains, and no more. It then times training steps alone and in packs, from which orch plan estimates, and says how
    far each is from the least time that the device could take. Run it first on a new machine, or on the head of a new
    cluster; it takes minutes. With a file of your own, the models of that file are checked and timed instead.

    \b
    Example: orch doctor --store s3://bucket/runs
    """
    from orch.running.doctor import CheckState
    from orch.running.machines import connected, examine_worker
    from orch.store import Store
    from orch.usercode import UserSweep

    opened = Store.open(store)
    catalogue = read_definitions(file, opened)
    codes = tuple(sweep.code for sweep in catalogue.sweeps.values() if isinstance(sweep, UserSweep))
    own = [each.name for each in catalogue.user_types if issubclass(each, ModelConfig)]
    if file and not own:
        raise InvalidSettings([f"{file} defines no model: leave it out to check the built-in ones"])
    with connected(device=device) as machines:
        echo(f"a worker on {machines.description}, device {machines.device}; store {opened.location}", err=True)
        counts = dict.fromkeys(CheckState, 0)
        for finding in examine_worker(opened.uri, machines, seconds, own or None, codes):
            counts[finding.state] += 1
            _show(finding, as_json)
    if failed := counts[CheckState.FAIL]:
        echo(f"{failed} of the checks failed: do not trust results from this device", err=True)
        sys.exit(1)
    echo(f"all {counts[CheckState.PASS]} checks passed", err=True)


def _show(finding: "Finding", as_json: bool) -> None:
    """Print a finding as a line. What is running is shown on a terminal only, and the next line replaces it."""
    from orch.running.doctor import CheckState

    on_terminal = sys.stderr.isatty()
    if finding.state is CheckState.RUNNING:
        if on_terminal:
            echo_laid_out("\r\x1b[K", err=True)
            echo(f"{finding.check} ({finding.detail}) …", nl=False, err=True)
        return
    if on_terminal:
        echo_laid_out("\r\x1b[K", err=True)
    if as_json:
        echo_data(json.dumps(asdict(finding)))
        return
    colour = {CheckState.PASS: "green", CheckState.FAIL: "red", CheckState.SKIPPED: "yellow"}[finding.state]
    echo(f"{finding.state:7}", nl=False, fg=colour)
    echo(f" {finding.check}: {finding.detail}")
