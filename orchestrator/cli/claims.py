"""`orch claims`: the paper's claims, asked of the results."""

import json
import sys
from typing import TYPE_CHECKING

import click

from orch.cli._options import store_option
from orch.sweeps.scales import SCALES

if TYPE_CHECKING:
    from orch.analysis.claims import ClaimsAtScale

DEMO = "demo"


@click.command()
@click.option("--scale", type=click.Choice([*SCALES, DEMO]), help="[default: every scale that has results]")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every number that was looked at.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a claim is contradicted.")
def claims(scale: str | None, store: str, as_json: bool, strict: bool) -> None:
    """Ask the paper's claims of the results: each is supported, contradicted, or there is not enough data.

    A model learns at an accuracy of 0.95 or more and fails below 0.5, the best over learning rates and seeds, as in
    the paper; between the two it does neither. Every claim first holds on the published numbers, where there are any.
    In a pipe the answer is CSV.

    \b
    Example: orch claims --scale laptop --strict
    """
    from orch.analysis.claims import Verdict, claims_table, judge_store, to_dict
    from orch.store import Store

    asked = judge_store(Store.open(store), scale)
    if as_json:
        click.echo(json.dumps([to_dict(each) for each in asked], indent=2))
    elif sys.stdout.isatty():
        for each in asked:
            _show(each)
    else:
        from orch.cli._output import write_table

        write_table(claims_table(asked))
    if strict and any(each.having(Verdict.CONTRADICTED) for each in asked):
        sys.exit(1)


def _show(asked: "ClaimsAtScale") -> None:
    from rich.console import Console
    from rich.text import Text

    from orch.analysis.claims import Verdict, evidence_text, verdict_text
    from orch.cli._tables import print_rows
    from orch.core.printable import printable

    looks = {
        Verdict.SUPPORTED: ("✓", "green"),
        Verdict.CONTRADICTED: ("✗", "bold red"),
        Verdict.NOT_ENOUGH: ("–", "dim"),
    }
    rows = []
    for judgement in asked.with_results:
        symbol, style = looks[judgement.verdict]
        verdict, evidence = printable(verdict_text(judgement)), printable(evidence_text(judgement))
        found = Text.assemble((verdict, style), "\n", evidence)
        rows.append({"": Text(symbol, style), "claim": judgement.claim.sentence, "evidence": found})
    title = f"Claims at {asked.scale} scale: {asked.summary}"
    if rows:
        print_rows(rows, title)
    else:
        click.secho(title, bold=True)
    if asked.without_results:
        Console().print(Text(asked.without_results, "dim"))
