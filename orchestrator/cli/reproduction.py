"""`orch reproduction`: how many published numbers were reproduced."""

import click

from orch.cli._options import paper_scale_option, store_option
from orch.cli._output import check_output, echo, output_options, write_table

SPLITS = ("ood", "validation")
OUTCOMES = ("within", "better", "worse", "begun")
ALL = "all"


@click.command()
@paper_scale_option
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    default="ood",
    show_default=True,
    help="ood: the numbers at the test length. validation: those at the trained lengths.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.05,
    show_default=True,
    help="A number is within if it differs by no more than this.",
)
@click.option(
    "--list",
    "listed",
    type=click.Choice([*OUTCOMES, ALL]),
    help="List these numbers instead, each with ours and the trials behind it, best first.",
)
@store_option
@output_options
def reproduction(
    scale: str, split: str, tolerance: float, listed: str | None, store: str, format: str | None, output: str | None
) -> None:
    """Count the published numbers that were reproduced.

    Each number that was attempted is within the tolerance, better or worse. It is attempted once every learning rate
    has a trial that stopped early or took all its steps. It is attempted sooner if ours is better already, or if both
    are 0.95 or more. All other numbers with a finished trial are begun. A number that was published twice counts once,
    by the nearer value. Where the paper leaves open how a table was trained, the reading that reproduces most of the
    table is used for all of it.

    \b
    Example: orch reproduction --list worse
    """
    from orch.analysis import load
    from orch.analysis.reproduction import ReproductionState
    from orch.analysis.views import reproduced_table, tally_table

    chosen_format = check_output(format, output)
    found = load(store).reproduction(scale, split, tolerance)
    if listed is not None:
        chosen = [ReproductionState(name) for name in (OUTCOMES if listed == ALL else [listed])]
        write_table(reproduced_table(found.having(chosen)), format, output)
        return
    write_table(tally_table(found), format, output)
    # Programs that read csv or json from standard output must not see this sentence.
    echo(f"\nAt {scale} scale, {found}.", err=chosen_format not in ("table", "markdown"))
