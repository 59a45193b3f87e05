"""`orch doctor`: is this device right?"""

import json
import sys
from dataclasses import asdict

import click

from orch.cli._options import writable_store_option


@click.command()
@writable_store_option
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--seconds", default=2.0, show_default=True, help="How long to time each model's training steps.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one finding per line.")
def doctor(store: str, device: str, seconds: float, as_json: bool) -> None:
    """Examine a worker of this machine or of the cluster at hand: every model against double precision on the CPU,
    packs, checkpoints, the store; then time training steps, which orch plan goes by. Minutes; the first thing to run
    on a new machine.

    \b
    Example: orch doctor --store s3://bucket/runs
    """
    from orch.running.doctor import CheckState
    from orch.running.machines import connected, examine_worker
    from orch.store import Store

    opened = Store.open(store)
    with connected(device=device) as machines:
        click.echo(f"a worker on {machines.description}, device {machines.device}; store {opened.location}", err=True)
        failed = 0
        for finding in examine_worker(opened.uri, machines, seconds):
            failed += finding.state is CheckState.FAIL
            if as_json:
                click.echo(json.dumps(asdict(finding)))
            else:
                mark = {CheckState.PASS: "green", CheckState.FAIL: "red", CheckState.SKIPPED: "yellow"}[finding.state]
                click.echo(f"{click.style(f'{finding.state:7}', fg=mark)} {finding.check}: {finding.detail}")
    if failed:
        click.echo(f"{failed} of the checks failed: do not trust results from this device", err=True)
        sys.exit(1)
