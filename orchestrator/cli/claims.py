"""`orch claims`: the claims of the paper and of the field, decided by the results."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orch.analysis.statistics import CONFIDENCE
from orch.cli._options import WRITTEN, OutputPath, store_option
from orch.cli._output import FORMATS, check_output, echo, echo_data, write_table
from orch.cli._tables import print_rows
from orch.core.atomic_write import write_atomically
from orch.core.counted import counted
from orch.core.errors import InvalidSettings
from orch.core.printable import printable
from orch.running.progress import duration
from orch.sweeps.scales import SCALES

if TYPE_CHECKING:
    from orch.analysis.claims import ClaimsAtScale, MissingSeeds
    from orch.store import Store

DEMO, ATLAS = "demo", "atlas"


@click.command()
@click.option("--scale", type=click.Choice([*SCALES, DEMO, ATLAS]), help="[default: every scale that has results]")
@store_option
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help="Show the undecided claims too, with what they lack; with --plan, every cell.",
)
@click.option(
    "--confidence",
    default=CONFIDENCE,
    show_default=True,
    metavar="SHARE",
    help="How sure it must be that most seeds agree with a verdict.",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Print the seeds that would make undecided claims sure, and their hours; --output FILE.py writes them as a"
    " sweep for orch sweep.",
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Print a table with a row for every claim, decided or not, in this format.  [a text for people]",
)
@click.option(
    "--output",
    metavar="FILE",
    type=OutputPath(dir_okay=False, endings=(*WRITTEN, ".py")),
    help="Write that table to this file.",
)
@click.option("--verdicts", is_flag=True, help="Make that table short: the verdict on each claim at each scale.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the numbers behind each verdict.")
@click.option("--strict", is_flag=True, help="Exit with 1 if a claim is contradicted.")
def claims(
    scale: str | None,
    store: str,
    show_all: bool,
    confidence: float,
    plan: bool,
    format: str | None,
    output: str | None,
    verdicts: bool,
    as_json: bool,
    strict: bool,
) -> None:
    """Decide which claims of the literature the results support.

    Each claim is supported, contradicted, or there is not enough data. A model has learned at an accuracy of 0.95 or
    more and has failed below 0.5, for the best over learning rates and seeds, as in the paper; in between it has done
    neither. The decided claims are shown with their evidence, and the others are counted. The claims of other
    publications are asked of the sweep atlas, and follow under a heading of their own.

    The best says little about how often a model learns. So each claim is also asked of every seed alone, at the chosen
    learning rates. It is sure if most seeds agree and the Wilson interval of their share excludes one half; otherwise
    the number of further seeds that would settle it, if the share stays, is given.

    \b
    Example: orch claims --scale laptop --confidence 0.95 --plan --output undecided.py
    """
    from orch.analysis.claims import Verdict, claims_table, judge_store, to_dict, verdicts_table
    from orch.store import Store

    _check(confidence, plan, format, output, as_json or verdicts)
    as_table = not plan and (verdicts or format is not None or output is not None)
    if as_table:
        check_output(format, output)
    opened = Store.open(store)
    asked = judge_store(opened, scale, confidence=confidence)
    if plan:
        _plan(opened, asked, confidence, show_all, output)
    elif as_json:
        echo_data(json.dumps([to_dict(each) for each in asked], indent=2))
    elif as_table:
        write_table((verdicts_table if verdicts else claims_table)(asked), format, output)
    else:
        for each in asked:
            _show(each, show_all, confidence)
    if strict and any(each.having(Verdict.CONTRADICTED) for each in asked):
        sys.exit(1)


def _check(confidence: float, plan: bool, format: str | None, output: str | None, as_json: bool) -> None:
    from orch.analysis.claims.missing_seeds import WRITTEN_BY

    problems = []
    if not 0.5 <= confidence < 1:
        problems.append(f"--confidence {confidence:g} is not between 0.5 and 1: use 0.95, for example")
    if plan and (format or as_json):
        problems.append("--plan is a text or a sweep file: leave out --format, --verdicts and --json")
    if plan and output is not None:
        if not output.endswith(".py"):
            problems.append(f"--output {output} is no sweep file: with --plan, use a name that ends in .py")
        elif not Path(output).absolute().parent.is_dir():
            problems.append(f"--output {output}: there is no folder {Path(output).absolute().parent}: make it first")
        elif Path(output).is_file() and WRITTEN_BY not in Path(output).read_text(errors="replace"):
            problems.append(
                f"--output {output} is there and was not written by --plan: name another file, or delete it"
            )
    if problems:
        raise InvalidSettings(problems)


def _plan(
    store: "Store", asked: "Sequence[ClaimsAtScale]", confidence: float, show_all: bool, output: str | None
) -> None:
    """Print the seeds that would settle what is undecided, and write them as a sweep if a file is given."""
    from orch.analysis.board import Board
    from orch.analysis.claims import missing_seeds, sweep_file
    from orch.analysis.claims.judging import JUDGED_SCALES
    from orch.planning.estimate import Estimator

    estimator = Estimator.of_store(store)

    def time(cells: "Sequence[MissingSeeds]") -> str:
        return duration(sum(estimator.estimate(trial)[0] for cell in cells for trial in cell.trials))

    found = []
    for each in asked:
        missing = missing_seeds(Board.read(store, JUDGED_SCALES[each.scale]), each)
        found += missing
        num_trials = sum(len(cell.seeds) for cell in missing)
        if not missing:
            echo(f"No undecided claim at {each.scale} scale can be settled by more seeds alone")
            continue
        title = (
            f"Seeds that would settle claims at {each.scale} scale with {confidence:.0%} confidence:"
            f" {counted(num_trials, 'trial')} of {counted(len(missing), 'cell')}, about {time(missing)} of one core"
        )
        rows = []
        for judgement in each.judgements:
            of_claim = [cell for cell in missing if judgement.claim.id in cell.claims]
            if of_claim:
                weakest, more = judgement.sureness.weakest, judgement.sureness.more_seeds
                rows.append(
                    {
                        "claim": judgement.claim.id,
                        "seeds that agree": str(weakest.share) if weakest else "",
                        "more": "unknown" if more is None else str(more),
                        "cells": str(len(of_claim)),
                        "trials": str(sum(len(cell.seeds) for cell in of_claim)),
                        "time": time(of_claim),
                    }
                )
        print_rows([_cell_row(cell) | {"time": time([cell])} for cell in missing] if show_all else rows, title)
    if output is not None and found:
        write_atomically(Path(output), sweep_file(found, confidence).encode())
        echo(f"wrote {output}: orch plan {output} shows its trials, orch sweep {output} runs them")
    elif found:
        echo("--all lists the cells; --output undecided.py writes them as a sweep for orch sweep undecided.py")


def _cell_row(cell: "MissingSeeds") -> dict[str, str]:
    model, task = cell.trial.model, cell.trial.task
    return {
        "model": f"{model.name} {model.full_summary}".rstrip(),
        "task": f"{task.name} {task.full_summary}".rstrip(),
        "rate": f"{cell.trial.learning_rate:g}",
        "seeds": ", ".join(map(str, cell.seeds)),
        "for claims": ", ".join(cell.claims),
    }


def _show(asked: "ClaimsAtScale", show_all: bool, confidence: float) -> None:
    """Print the claims with their evidence: a table on a terminal, short paragraphs in a pipe."""
    from rich.text import Text

    from orch.analysis.claims import Verdict, evidence_text, sureness_text, verdict_text

    looks = {
        Verdict.SUPPORTED: ("✓", "green"),
        Verdict.CONTRADICTED: ("✗", "bold red"),
        Verdict.NOT_ENOUGH: ("–", "dim"),
    }
    shown = [each for each in asked.judgements if show_all or each.verdict is not Verdict.NOT_ENOUGH]
    title = f"{asked.title}: {asked.summary}"
    if not shown or not sys.stdout.isatty():
        echo(title, bold=True)
    rows = []
    for judgement in shown:
        symbol, style = looks[judgement.verdict]
        texts = (verdict_text(judgement), evidence_text(judgement), sureness_text(judgement))
        verdict, evidence, sureness = map(printable, texts)
        found = Text.assemble((verdict, style), "\n", evidence, *([("\n" + sureness, "dim")] if sureness else []))
        source = f" ({judgement.claim.source})" if judgement.claim.source else ""
        rows.append({"": Text(symbol, style), "claim": judgement.claim.sentence + source, "evidence": found})
        if not sys.stdout.isatty():
            echo(f"{symbol} {judgement.claim.sentence}{source}")
            for line in filter(None, (verdict, evidence, sureness)):
                echo(f"    {line}")
    if rows and sys.stdout.isatty():
        print_rows(rows, title)
    echo("Verdicts go by the best over learning rates and seeds, as the paper reads its results.")
    echo(f"By most seeds, {confidence:.0%} sure: {asked.sure_summary} (see --plan).")
    if asked.caution:
        echo(asked.caution)
    if left := len(asked.judgements) - len(shown):
        have = sum(each.has_results for each in asked.judgements if each not in shown)
        partly = f", {have:,} of them with some results" if have else ""
        text = f"{counted(left, 'claim')} not decided yet{partly}: orch claims --scale {asked.scale} --all shows why"
        echo(text, dim=True)
