"""`orch sweep`: run what is missing."""

from typing import Any

import click

from orchestrator.commands._options import scale_option, store_option, where_option
from orchestrator.commands._run import run, run_options


@click.command()
@click.argument("sweeps", nargs=-1, required=True, metavar="SWEEP…|all")
@scale_option
@where_option
@store_option
@run_options
def sweep(sweeps: tuple[str, ...], scale: str, where: tuple[str, ...], store: str, **given: Any) -> None:
    """Run what is missing of these sweeps, on this machine or on the cluster that RAY_ADDRESS names.

    Safe to stop (Ctrl-C) and to repeat: finished trials are never run again, unfinished ones go on from their
    checkpoints, failed ones are tried again.

    \b
    Example: orch sweep main --scale laptop --where task=modular_addition
    """
    from orchestrator.sweep import Request

    run([Request(sweeps, scale, where)], store, given)
