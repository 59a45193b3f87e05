"""`orch resume`: continue everything that is unfinished."""

from typing import Any

import click

from orch.cli._on import run_job
from orch.cli._options import writable_store_option
from orch.cli._run import check_options, run, run_options
from orch.cli._sweeps import recorded_argument
from orch.core.errors import OrchError


@click.command()
@recorded_argument
@writable_store_option
@run_options
@click.pass_context
def resume(context: click.Context, /, sweeps: tuple[str, ...], store: str, **given: Any) -> None:
    """Continue every unfinished sweep of a store.

    If sweeps are named, as orch status shows them, only those continue. Failed trials are retried. A sweep file runs
    with the newest code of it that is recorded in the store, so resume only stores that you trust. Options of the run
    are not recorded: give --decide again to a sweep that ran with it, or resume runs what --decide left out.

    \b
    Example: orch resume --store runs
    """
    from orch.running.requests import recorded_requests
    from orch.store import Store

    check_options(given)
    if given["on"]:
        run_job(context, sweeps)
    opened = Store.open(store).check_exists()
    requests = recorded_requests(opened, sweeps)
    if not requests:
        raise OrchError(
            f"no sweep was ever started on {opened.location}: start one with orch sweep, or name another --store"
        )
    run(requests, store, given)
