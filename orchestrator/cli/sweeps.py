"""`orch sweeps`: the sweeps that can be run."""

import json
from typing import Any

import click

from orch.analysis.board import Board
from orch.analysis.comparison import num_covered
from orch.cli._options import json_option, store_option
from orch.cli._output import echo_data
from orch.cli._tables import print_rows
from orch.sweeps.expansion import expand
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import PAPER, SCALES


@click.command()
@store_option
@json_option
def sweeps(store: str, as_json: bool) -> None:
    """List the sweeps.

    Each row says what the sweep reproduces, how many published numbers it covers, and for every scale how many trials
    it has and how many of them are finished in the store.

    \b
    Example: orch sweeps --store runs
    """
    from orch.store import Store

    board = Board.read(Store.open(store), PAPER)
    rows: list[dict[str, Any]] = []
    for name, sweep in sorted(SWEEPS.items()):
        row: dict[str, Any] = {"sweep": name, "title": sweep.title, "reproduces": sweep.reproduces}
        row["published cells"] = num_covered(PAPER, [name])
        for scale in SCALES.values():
            expansion = expand([name], scale, board.results)
            num_trials = len(expansion.trials) + len(expansion.waiting)
            row[scale.name] = {"trials": num_trials, "done": len(expansion.trials.keys() & board.finished.keys())}
        rows.append(row)
    if as_json:
        echo_data(json.dumps(rows, indent=2))
        return
    for row in rows:
        for name in SCALES:
            counts = row[name]
            row[name] = f"{counts['done']:,} of {counts['trials']:,}" if counts["done"] else counts["trials"]
    print_rows(rows, title="Sweeps: trials at each scale, and how many are done")
