"""`orch reproduction`: how far the published numbers are met."""

import click

from orch.cli._options import paper_scale_option, store_option
from orch.cli._output import check_output, output_options, write_table

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
    help="The numbers at the length of the test, or those on lengths like the trained ones.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.05,
    show_default=True,
    help="Differences up to this are within, on either side.",
)
@click.option(
    "--list",
    "listed",
    type=click.Choice([*OUTCOMES, ALL]),
    help="Instead of the counts, the numbers themselves with ours and the trials they rest on, the best first.",
)
@store_option
@output_options
def reproduction(
    scale: str, split: str, tolerance: float, listed: str | None, store: str, format: str | None, output: str | None
) -> None:
    """Count the published numbers that were attempted, and whether ours are within a tolerance, better or worse.

    A number is attempted once every learning rate had a trial that stopped early or took all its steps; one published
    at 0.95 or more, also as soon as a trial of ours reached 0.95; and where ours are better, more could only add to it.
    Else, with fewer finished trials or with one that diverged, it is begun, and counted apart. A number published twice
    counts once, by the value that comes nearest; where the paper leaves open how a table was trained, the reading that
    meets most of it counts for all of it.

    \b
    Example: orch reproduction --list worse
    """
    from orch.analysis import load
    from orch.analysis.reproduction import ReproductionState
    from orch.analysis.views import reproduced_table, tally_table

    told = check_output(format, output)
    found = load(store).reproduction(scale, split, tolerance)
    if listed is not None:
        chosen = [ReproductionState(name) for name in (OUTCOMES if listed == ALL else [listed])]
        write_table(reproduced_table(found.having(chosen)), format, output)
        return
    write_table(tally_table(found), format, output)
    # In a pipe only the table is data.
    click.echo(f"\nAt {scale} scale, {found}.", err=told not in ("table", "markdown"))
