"""`orch verify`: every byte of a store compared with its checksum."""

import dataclasses
import json
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import click

from orch.cli._options import json_option, store_option
from orch.core.counted import counted
from orch.core.printable import printable

if TYPE_CHECKING:
    from orch.store.integrity import ExaminedFile


@click.command()
@store_option
@json_option
def verify(store: str, as_json: bool) -> None:
    """Read every file of a store and name those that are damaged.

    Nothing is changed. The exit code is 1 if a file is damaged or missing. Files from before there were checksums are
    counted as not under a checksum; orch compact puts those that are tables under one.

    \b
    Example: orch verify --store runs
    """
    from orch.store import Store
    from orch.store.integrity import Condition

    opened = Store.open(store).check_exists()
    examined = list(opened.examine())
    bad = [file for file in examined if file.condition in (Condition.DAMAGED, Condition.MISSING)]
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(file) for file in examined], indent=2))
    else:
        _print(examined, bad, opened.location)
    if bad:
        sys.exit(1)


def _print(examined: "list[ExaminedFile]", bad: "list[ExaminedFile]", location: str) -> None:
    from orch.cli._tables import print_rows
    from orch.store.integrity import Condition

    kinds: dict[str, list[ExaminedFile]] = defaultdict(list)
    for file in examined:
        kinds[file.kind].append(file)
    rows: list[dict[str, Any]] = []
    for kind, files in sorted(kinds.items()):
        counts = Counter(file.condition for file in files)
        size = f"{sum(file.size for file in files) / 1e6:.1f}"
        rows.append(
            {"files of": kind, "number": len(files), "MB": size} | {str(each): counts.get(each) for each in Condition}
        )
    print_rows(rows, title=location)
    for file in bad:
        click.echo(printable(f"{file.path} is {file.condition} ({file.problem})"), err=True)
    num_damaged = sum(file.condition is Condition.DAMAGED for file in bad)
    if num_damaged:
        what = f"{counted(num_damaged, 'file')} damaged"
        click.echo(f"{what}: what reads them sets them aside, and orch resume trains again what is missing", err=True)
    if len(bad) > num_damaged:
        click.echo(f"{counted(len(bad) - num_damaged, 'file')} missing: get an undamaged copy", err=True)
