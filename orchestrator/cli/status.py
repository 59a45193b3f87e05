"""`orch status`: the progress of sweeps, read from the store alone."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from orch.cli._on import run_on_head
from orch.cli._options import json_option, on_option, store_option
from orch.cli._output import echo, echo_data
from orch.cli._tables import print_rows
from orch.core.counted import counted
from orch.core.printable import printable
from orch.running.progress import about

if TYPE_CHECKING:
    from orch.running.spending import Spent

TITLES = {"name": "sweep", "total": "trials", "to_do": "to do"}
"""Titles of columns that are not called like the fields of a `SweepStatus`."""


@click.command()
@store_option
@on_option
@json_option
@click.pass_context
def status(context: click.Context, store: str, on: str | None, as_json: bool) -> None:
    """Show the progress of sweeps and the time left.

    It reads only the store, so it works from any machine, whether or not a sweep is running. A sweep that ran with
    --decide shows what it left out as to do: orch resume runs that too, unless it is given --decide again.

    \b
    Example: orch status --store runs
    """
    if on:
        run_on_head(context)
    from orch.running.status import read_status
    from orch.store import Store
    from orch.store.bundled import bundled_hint

    found = read_status(Store.open(store).check_exists())
    if as_json:
        echo_data(json.dumps(found.to_dict(), indent=2))
        return
    rows = [{TITLES.get(name, name): value for name, value in asdict(each).items()} for each in found.sweeps]
    empty = [name for name in ("where", "lost", "outdated") if not any(row[name] for row in rows)]
    rows = [{name: value for name, value in row.items() if name not in empty} for row in rows]
    if rows:
        print_rows(rows, title=f"Sweeps on {found.location}")
    else:
        echo(f"{found.location} has no sweeps yet: start one with orch sweep{bundled_hint()}")
    for driver in found.drivers:
        echo(printable(f"running now: {driver}"))
    for line in found.quarantined:
        echo(printable(f"in quarantine: {line}"))
    for line in found.workers:
        echo(printable(f"  {line}"))
    if found.finished_last_hour or found.seconds_left is not None:
        left = "" if found.seconds_left is None else f", {about(found.seconds_left)} left"
        echo(f"{counted(found.finished_last_hour, 'trial')} finished in the last hour{left}")
    if found.spent.dollars is not None:
        echo(_dollars(found.spent))
    if any(each.outdated for each in found.sweeps):
        echo("outdated: the file was edited and run again since; orch resume continues with its newest code")
    if found.distinct.lost:
        echo(f"lost: {counted(found.distinct.lost, 'failed trial')} only lost their driver; orch resume continues them")
    if any(each.failed > each.lost for each in found.sweeps):
        echo("orch failures shows why trials failed; orch resume retries them")


def _dollars(spent: "Spent") -> str:
    """Describe what was spent and will be."""
    now = "" if spent.per_hour is None else f", ${spent.per_hour:,.2f} an hour now"
    then = "" if spent.projected is None else f", about ${spent.projected:,.2f} when all is done"
    return f"spent: about ${spent.dollars:,.2f} by {counted(spent.runs, 'run')}{now}{then}"
