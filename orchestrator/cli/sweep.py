"""`orch sweep`: run the trials of sweeps that have no result yet."""

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
    """Run the trials of sweeps that have no result yet.

    They run on this machine, on the cluster whose head this machine is, or on the cluster of --on. It is safe to stop
    (Ctrl-C) and to repeat: finished trials are never run again, unfinished ones continue from their checkpoints, and
    failed ones are retried. A sweep can be your own file, which may define models and tasks: see
    examples/gated_sweep.py. Its code is sent to the workers and recorded in the store, so that orch resume can run it.

    With --on, the sweep outlives this terminal. Its log is shown here; Ctrl-C stops only that, and orch logs --follow
    shows it again. The cluster runs this copy of the project, with local edits.

    \b
    Example: orch sweep main --scale laptop --where task=modular_addition
    """
    from orch.running.requests import Request
    from orch.usercode.probe import make_probe

    check_options(given)
    request = Request.read(sweeps, scale, where)
    if given["on"]:
        request.plan(None, make_probe())  # errors in the request are reported here, not on the cluster
        run_job(context, request.sweeps, request.code)
    else:
        run([request], store, given)
