"""`orch sweep`: run what is missing."""

from typing import Any

import click

from orch.cli._on import run_job
from orch.cli._options import scale_option, where_option, writable_store_option
from orch.cli._run import check_options, run, run_options


@click.command()
@click.argument("sweeps", nargs=-1, required=True, metavar="SWEEP…|FILE.py…|all")
@scale_option
@where_option
@writable_store_option
@run_options
@click.pass_context
def sweep(
    context: click.Context, /, sweeps: tuple[str, ...], scale: str, where: tuple[str, ...], store: str, **given: Any
) -> None:
    """Run what is missing of these sweeps: on this machine, on the cluster of which this is the head, or --on another.

    Safe to stop (Ctrl-C) and to repeat: finished trials are never run again, unfinished ones go on from their
    checkpoints, failed ones are tried again. A sweep can be a file of yours, which may define models and tasks:
    see examples/gated_sweep.py. Its code goes to the workers and into the store, from where orch resume runs it.

    With --on the sweep outlives this terminal: its log is followed, Ctrl-C only stops that, and orch logs comes back to
    it. The cluster runs this project as it stands here, edits included.

    \b
    Example: orch sweep main --scale laptop --where task=modular_addition
    """
    from orch.running.requests import Request

    check_options(given)
    request = Request.read(sweeps, scale, where)
    if given["on"]:
        request.plan(None)  # errors in the request are reported here, not on the cluster
        run_job(context, request.sweeps, request.code)
    else:
        run([request], store, given)
