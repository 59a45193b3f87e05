"""`orch resume`: go on with everything unfinished."""

from typing import Any

import click

from orchestrator.commands._options import store_option
from orchestrator.commands._run import run, run_options


@click.command()
@store_option
@run_options
def resume(store: str, **given: Any) -> None:
    """Go on with every sweep that the store knows to be unfinished, failed trials included.

    \b
    Example: orch resume --store runs
    """
    from orchestrator.errors import OrchError
    from orchestrator.store import Store
    from orchestrator.sweep import recorded_requests

    opened = Store.open(store)
    requests = recorded_requests(opened)
    if not requests:
        raise OrchError(
            f"no sweep was ever started on {opened.location}: start one with orch sweep, or name another --store"
        )
    run(requests, store, given)
