"""`orch claims`: the paper's claims, decided by the results."""

import json
import sys
from typing import TYPE_CHECKING

import click

from orch.cli._options import store_option
from orch.cli._output import write_table
from orch.cli._tables import print_rows
from orch.core.printable import printable
from orch.sweeps.scales import SCALES

if TYPE_CHECKING:
    from orch.analysis.claims import ClaimsAtScale

DEMO = "demo"


@click.command()
@click.option("--scale", type=click.Choice([*SCALES, DEMO]), help="[default: every scale that has results]")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the numbers behind each verdict.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a claim is contradicted.")
def claims(scale: str | None, store: str, as_json: bool, strict: bool) -> None:
    """Decide which of the paper's claims the results support.

    Each claim is supported, contradicted, or there is not enough data. A model has learned at an accuracy of 0.95 or
    more and has failed below 0.5, for the best over learning rates and seeds, as in the paper; in between it has done
    neither. The output is a table on a terminal and CSV in a pipe.

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
        write_table(claims_table(asked))
    if strict and any(each.having(Verdict.CONTRADICTED) for each in asked):
        sys.exit(1)


def _show(asked: "ClaimsAtScale") -> None:
    from rich.console import Console
    from rich.text import Text

    from orch.analysis.claims import Verdict, evidence_text, verdict_text

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
