"""`orch claims`: the claims of the paper and of the field, decided by the results."""

import json
import sys
from typing import TYPE_CHECKING

import click

from orch.cli._options import store_option
from orch.cli._output import FORMATS, check_output, write_table
from orch.cli._tables import print_rows
from orch.core.counted import counted
from orch.core.printable import printable
from orch.sweeps.scales import SCALES

if TYPE_CHECKING:
    from orch.analysis.claims import ClaimsAtScale

DEMO, ATLAS = "demo", "atlas"


@click.command()
@click.option("--scale", type=click.Choice([*SCALES, DEMO, ATLAS]), help="[default: every scale that has results]")
@store_option
@click.option("--all", "show_all", is_flag=True, help="Show the undecided claims too, with what they lack.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Print a table with a row for every claim, decided or not, in this format.  [a text for people]",
)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write that table to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the numbers behind each verdict.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a claim is contradicted.")
def claims(
    scale: str | None, store: str, show_all: bool, format: str | None, output: str | None, as_json: bool, strict: bool
) -> None:
    """Decide which claims of the paper, and of the field, the results support.

    Each claim is supported, contradicted, or there is not enough data. A model has learned at an accuracy of 0.95 or
    more and has failed below 0.5, for the best over learning rates and seeds, as in the paper; in between it has done
    neither. The decided claims are shown with their evidence, and the others are counted. The claims of other
    publications are asked of the sweep atlas, and follow under a heading of their own.

    \b
    Example: orch claims --scale laptop --strict
    """
    from orch.analysis.claims import Verdict, claims_table, judge_store, to_dict
    from orch.store import Store

    as_table = format is not None or output is not None
    if as_table:
        check_output(format, output)
    asked = judge_store(Store.open(store), scale)
    if as_json:
        click.echo(json.dumps([to_dict(each) for each in asked], indent=2))
    elif as_table:
        write_table(claims_table(asked), format, output)
    else:
        for each in asked:
            _show(each, show_all)
    if strict and any(each.having(Verdict.CONTRADICTED) for each in asked):
        sys.exit(1)


def _show(asked: "ClaimsAtScale", show_all: bool) -> None:
    """Print the claims with their evidence: a table on a terminal, short paragraphs in a pipe."""
    from rich.text import Text

    from orch.analysis.claims import Verdict, evidence_text, verdict_text

    looks = {
        Verdict.SUPPORTED: ("✓", "green"),
        Verdict.CONTRADICTED: ("✗", "bold red"),
        Verdict.NOT_ENOUGH: ("–", "dim"),
    }
    shown = [each for each in asked.judgements if show_all or each.verdict is not Verdict.NOT_ENOUGH]
    title = f"{asked.title}: {asked.summary}"
    if not shown or not sys.stdout.isatty():
        click.secho(title, bold=True)
    rows = []
    for judgement in shown:
        symbol, style = looks[judgement.verdict]
        verdict, evidence = printable(verdict_text(judgement)), printable(evidence_text(judgement))
        found = Text.assemble((verdict, style), "\n", evidence)
        source = f" ({judgement.claim.source})" if judgement.claim.source else ""
        rows.append({"": Text(symbol, style), "claim": judgement.claim.sentence + source, "evidence": found})
        if not sys.stdout.isatty():
            click.echo(f"{symbol} {judgement.claim.sentence}{source}")
            for line in filter(None, (verdict, evidence)):
                click.echo(f"    {line}")
    if rows and sys.stdout.isatty():
        print_rows(rows, title)
    if left := len(asked.judgements) - len(shown):
        have = sum(each.has_results for each in asked.judgements if each not in shown)
        partly = f", {have:,} of them with some results" if have else ""
        text = f"{counted(left, 'claim')} not decided yet{partly}: orch claims --scale {asked.scale} --all shows why"
        click.secho(text, dim=True)
