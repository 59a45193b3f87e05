"""`orch logs`: the log of a sweep."""

import sys

import click

from orch.cli._on import say, write
from orch.cli._options import on_option, store_option
from orch.cli._output import echo, echo_data
from orch.core.errors import InvalidSettings
from orch.core.interruption import exit_code
from orch.core.printable import printable


@click.command()
@store_option
@on_option
@click.option("--follow", is_flag=True, help="Continue until the sweep ends. Ctrl-C stops only this command.")
@click.option("--json", "as_json", is_flag=True, help="Print the stored lines, which are JSON. Not with --on.")
def logs(store: str, on: str | None, follow: bool, as_json: bool) -> None:
    """Show the log of the newest sweep on a store.

    It has a line for every pack of trials that started, finished or failed. With --on, the log is the output of the
    sweep that was submitted last; with --follow as well, the exit code is that of the sweep.

    \b
    Example: orch logs --on cluster/a100.yaml --follow
    """
    if on:
        from orch.cluster.on_cluster import show_log

        if as_json:
            raise InvalidSettings(["--json shows the log in a store: leave out --on and name the --store"])
        sys.exit(show_log(on, follow, say, write))
    from orch.running.driver_log import follow_log, newest_driver, read_log, readable_line
    from orch.store import Store

    opened = Store.open(store).check_exists()
    driver_id = newest_driver(opened)
    try:
        for line in follow_log(opened, driver_id) if follow else read_log(opened, driver_id):
            if as_json:
                echo_data(line)
            else:
                echo(printable(readable_line(line)))
    except KeyboardInterrupt:
        sys.exit(exit_code())
