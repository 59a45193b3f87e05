"""`orch bundle`: a small copy of a store, to ship with the package."""

from pathlib import Path

import click

from orch.cli._options import OutputPath, store_option
from orch.core.counted import counted


@click.command()
@store_option
@click.option("--and", "others", multiple=True, metavar="FOLDER|URI", help="Another store to copy. May be repeated.")
@click.option(
    "--output",
    type=OutputPath(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="The bundle's folder. A bundle that is already there is replaced, or extended with --add.",
)
@click.option("--add", is_flag=True, help="Keep what the bundle in --output has already, and add what is new.")
@click.option(
    "--curve-points",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    help="Most points of each learning curve to copy, spread evenly.",
)
def bundle(store: str, others: tuple[str, ...], output: Path, add: bool, curve_points: int) -> None:
    """Copy the results of built-in models into a small store.

    Checkpoints, logs and tracebacks are left out, and all weights except those that the figure of rotation angles
    shows. The bundle in analysis/bundled ships with the package; --store bundled reads it.

    \b
    Example: orch bundle --store runs --add --output analysis/bundled
    """
    from orch.analysis.bundle import bundle as make_bundle
    from orch.store import Store

    kept = [Store.open(output)] if add else []
    num_before = sum(len(each.check_exists().done()) for each in kept)
    made = make_bundle([*kept, *(Store.open(each) for each in (store, *others))], output, curve_points)
    counts = f"{counted(made.num_trials, 'trial')}, {counted(made.num_files, 'file')}"
    new = f", {made.num_trials - num_before:,} of them new" if add else ""
    click.echo(f"{output}: {counts}, {made.num_bytes / 1e6:.1f} MB{new}")
