"""`orch serve`: a live page about a store."""

import contextlib
import os
import threading
from typing import TYPE_CHECKING

import click

from orch.cli._options import price_option, store_option
from orch.cli._output import echo
from orch.core.errors import OrchError

if TYPE_CHECKING:
    from orch.serving.overview import OverviewReader

NICENESS = 10
"""The page gives way to trials that train on the same machine."""


@click.command()
@store_option
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0: any free port.")
@price_option
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def serve(store: str, port: int, price: str | None, open_browser: bool) -> None:
    """Show a store in a browser, live and read-only.

    The page has progress, running trials with their curves, tiles of models and tasks, claims, failures, every trial,
    tables to sort and download, and SQL. It reads only the store, so it works beside a running sweep, after it, and on
    a bucket. It writes nothing and listens on this machine only. To see the page of another machine, forward its port:
    ssh -L 8470:127.0.0.1:8470 HOST. Ctrl-C ends it.

    \b
    Example: orch serve --store runs
    """
    from orch.serving.money import read_price
    from orch.serving.overview import OverviewReader
    from orch.serving.routes import Routes
    from orch.serving.server import PageServer
    from orch.store import Store

    reader = OverviewReader(Store.open(store), None if price is None else read_price(price))
    server = PageServer(Routes(reader), port)
    # What the first page shows is read at once, and only that at full priority.
    threading.Thread(target=_warm_up, args=(reader,), daemon=True).start()
    os.nice(NICENESS)
    echo(f"{server.address} shows {reader.store.location} (Ctrl-C ends it)", err=True)
    if not reader.store.exists():
        echo(f"{reader.store.location} has no results yet: the page fills when a sweep writes to it", err=True)
    if open_browser:
        click.launch(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        echo("ended", err=True)
    finally:
        server.server_close()


def _warm_up(reader: "OverviewReader") -> None:
    with contextlib.suppress(OrchError):  # the page says it again
        reader.read()
