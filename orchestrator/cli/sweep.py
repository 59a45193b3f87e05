"""`orch sweep`: run the trials of sweeps that have no result yet."""

from typing import Any

import click

from orch.cli._edits import edits_line, find_edits
from orch.cli._on import given_store, run_job
from orch.cli._options import sweep_scale_options, where_option, writable_store_option
from orch.cli._output import echo
from orch.cli._run import check_options, run, run_options
from orch.cli._sweeps import say_note, sweeps_argument


@click.command()
@sweeps_argument(required=True)
@sweep_scale_options
@where_option
@writable_store_option
@run_options
@click.pass_context
def sweep(
    context: click.Context,
    /,
    sweeps: tuple[str, ...],
    scale: str | None,
    where: tuple[str, ...],
    store: str,
    **given: Any,
) -> None:
    """Run the trials of sweeps that have no result yet.

    They run on this machine, on the cluster whose head this machine is, or on the cluster of --on. It is safe to stop
    (Ctrl-C) and to repeat: finished trials are never run again, unfinished ones continue from their checkpoints, and
    failed ones are retried. A sweep can be your own file, which may define models and tasks: see
    examples/gated_sweep.py. Its code is sent to the workers and recorded in the store, so that orch resume can run it,
    and orch sweep too, by the name that orch status shows.

    With --on, the sweep outlives this terminal. Its log is shown here; Ctrl-C stops only that, and orch logs --follow
    shows it again. The cluster runs this copy of the project, with local edits.

    \b
    Example: orch sweep main --scale laptop --where task=modular_addition
    """
    from orch.running.requests import Request
    from orch.store import Store
    from orch.usercode import name_sweeps
    from orch.usercode.probe import make_probe

    check_options(given)
    place = given_store(context) if given["on"] else store
    named = name_sweeps(sweeps, Store.open(place) if place else None, scale)
    say_note(named)
    request = Request.of(named, where)
    if given["on"]:
        request.plan(None, make_probe())  # errors in the request are reported here, not on the cluster
        run_job(context, request.sweeps, request.code)
    if request.code and not given["quiet"]:
        opened = Store.open(store)
        planned = request.plan(opened).trials
        if edits := find_edits((each.trial for each in planned if each.left), opened):
            echo(edits_line(edits, sweeps), err=True)
    run([request], store, given)
