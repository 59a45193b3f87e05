"""`orch watch`: the overview of a store in a terminal."""

import contextlib
import sys
import time

import click

from orch.cli._options import price_option, store_option

PLAIN_WIDTH = 160


@click.command()
@store_option
@price_option
@click.option("--once", is_flag=True, help="Print the overview once and exit, as is done where there is no terminal.")
def watch(store: str, price: str | None, once: bool) -> None:
    """Watch a store in the terminal.

    The overview has progress, running trials, tiles of models and tasks, claims and failures. It reads only the store,
    so it works from any machine, whether or not a sweep is running. On a terminal it waits for a
    store that does not exist yet. orch serve shows more. Ctrl-C ends it.

    \b
    Example: orch watch --store runs
    """
    from rich.console import Console
    from rich.live import Live

    from orch.serving.money import read_price
    from orch.serving.overview import OverviewReader
    from orch.serving.terminal import draw
    from orch.store import Store

    opened, live_price = Store.open(store), None if price is None else read_price(price)
    if once or not sys.stdout.isatty():
        opened.check_exists()  # on a terminal it waits for the first sweep, as the page does
    reader = OverviewReader(opened, live_price)
    # In a pipe or a file nothing is folded to the width of a terminal that is not there.
    console = Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    colours = console.color_system is not None
    if once or not sys.stdout.isatty():
        console.print(draw(reader.read(), colours))
        return
    with contextlib.suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(draw(reader.read(), colours), refresh=True)
            time.sleep(reader.seconds)
