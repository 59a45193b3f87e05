"""`orch bundle`: a store made small, to ship with the package."""

from pathlib import Path

import click

from orch.cli._options import store_option


@click.command()
@store_option
@click.option("--and", "others", multiple=True, metavar="FOLDER|URI", help="Another store, to go into the same bundle.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Where to: a new folder, or one that an earlier bundle is in, which is replaced.",
)
@click.option(
    "--curve-points",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    help="Most validations to keep of each trial's training, spread evenly.",
)
def bundle(store: str, others: tuple[str, ...], output: Path, curve_points: int) -> None:
    """Copy the results of built-in models into a small store without checkpoints, logs and tracebacks. Of the weights
    only those stay that the figure of rotation angles shows. The package's own copy is what --store bundled reads.

    \b
    Example: orch bundle --store runs --output analysis/bundled
    """
    from orch.analysis.bundle import bundle as make_bundle
    from orch.store import Store

    made = make_bundle([Store.open(each) for each in (store, *others)], output, curve_points)
    click.echo(f"{output}: {made.num_trials:,} trials, {made.num_files:,} files, {made.num_bytes / 1e6:.1f} MB")
