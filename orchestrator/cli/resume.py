"""`orch resume`: go on with everything unfinished."""

from typing import Any

import click

from orch.cli._on import run_job
from orch.cli._options import writable_store_option
from orch.cli._run import check_options, run, run_options


@click.command()
@writable_store_option
@run_options
@click.pass_context
def resume(context: click.Context, /, store: str, **given: Any) -> None:
    """Go on with every sweep that the store knows to be unfinished, failed trials included.

    A sweep file of yours goes on with the code that the store has of it: resume only stores that you trust.

    \b
    Example: orch resume --store runs
    """
    from orch.core.errors import OrchError
    from orch.running.requests import recorded_requests
    from orch.store import Store

    check_options(given)
    if given["on"]:
        run_job(context)
    opened = Store.open(store)
    requests = recorded_requests(opened)
    if not requests:
        raise OrchError(
            f"no sweep was ever started on {opened.location}: start one with orch sweep, or name another --store"
        )
    run(requests, store, given)
