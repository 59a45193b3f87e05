"""`orch compact`: merge many small parts of a store into a few large ones."""

import click

from orch.cli._options import writable_store_option


@click.command()
@writable_store_option
def compact(store: str) -> None:
    """Merge the small files of a store.

    A sweep does this while it runs. It is safe at any time. Afterwards plain readers of Parquet see each finished trial
    once, and every table is under a checksum.

    \b
    Example: orch compact --store runs
    """
    from orch.store import Store

    click.echo(Store.open(store).check_exists().compact(min_parts=2, rewrite=True).description)
