"""`orch compact`: many small parts into few large ones."""

import click

from orch.cli._options import writable_store_option


@click.command()
@writable_store_option
def compact(store: str) -> None:
    """Merge the store's small parts. A sweep does this as it goes; safe at any time, even while one runs.

    \b
    Example: orch compact --store runs
    """
    from orch.store import Store

    report = Store.open(store).compact(min_parts=2)
    click.echo(str(report))
