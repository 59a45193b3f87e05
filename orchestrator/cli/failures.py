"""`orch failures`: the errors of failed trials, grouped."""

import dataclasses
import json

import click

from orch.cli._on import run_on_head
from orch.cli._options import json_option, on_option, store_option
from orch.cli._output import echo, echo_data
from orch.core.counted import counted
from orch.core.printable import printable, printable_lines


@click.command()
@store_option
@on_option
@json_option
@click.pass_context
def failures(context: click.Context, store: str, on: str | None, as_json: bool) -> None:
    """Show the errors of failed trials, with tracebacks.

    Equal errors are one group, with its trials and one traceback.

    \b
    Example: orch failures --store runs
    """
    if on:
        run_on_head(context)
    from orch.running.status import read_failures
    from orch.store import Store

    opened = Store.open(store).check_exists()
    groups = read_failures(opened)
    if as_json:
        echo_data(json.dumps([dataclasses.asdict(group) for group in groups], indent=2))
        return
    if not groups:
        echo("no trial has failed")
    for group in groups:
        count = len(group.trial_ids)
        attempts = f"{counted(count, 'trial')}, {counted(group.attempts, 'attempt')}"
        echo(printable(f"{attempts}: {group.signature}"), bold=True)
        echo(printable(f"  {group.outcome.replace('_', ' ')}, last at {group.last_at}: {group.message}"))
        for line in printable_lines((group.traceback or "").rstrip()):
            echo(f"    {line}")
        shown = group.trial_ids[:10]
        echo(f"  trials: {' '.join(shown)}{' …' if count > len(shown) else ''}")
        echo(f"  to run one of them in this process: orch train --trial {shown[0]} --store {opened.location}")
