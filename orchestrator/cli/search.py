"""`orch search`: adaptive search over a trial's settings."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from orch.cli._options import BUNDLED, json_option, protocol_option, store_option
from orch.cli._run import check_options, make_options, worker_options
from orch.cli._settings import (
    SettingsCommand,
    given_settings,
    model_option,
    setting_options,
    task_option,
)
from orch.cli._sweeps import file_argument, read_definitions
from orch.cli._tables import print_rows
from orch.core.counted import counted
from orch.core.errors import InvalidSettings, StoreReadOnly
from orch.core.interruption import exit_code
from orch.core.printable import printable
from orch.running.progress import duration
from orch.search.objective import Objective
from orch.search.space import Space, parse_space
from orch.search.spec import Level, SearchSpec
from orch.sweeps.definitions import Definitions, described_task
from orch.sweeps.protocols import find_protocol

ALL = "all"


@click.command(cls=SettingsCommand)
@file_argument
@model_option
@task_option
@click.option(
    "--vary",
    multiple=True,
    metavar="SETTING=VALUES",
    help="A setting to search over: a list (rank=1,2,4) or a range (learning_rate=1e-4..1e-2). May be repeated.",
)
@protocol_option
@click.option("--seeds", default=3, show_default=True, help="Seeds that every point is trained with.")
@click.option(
    "--points",
    type=int,
    help="Points to try; with --smallest, for each value.  [20; with --smallest 1, or 5 if other settings vary too]",
)
@click.option(
    "--metric",
    default="accuracy_100",
    show_default=True,
    help="What to search by: accuracy_N at N inputs, validation_accuracy, validation_loss, steps_trained, …",
)
@click.option(
    "--objective",
    type=click.Choice(["mean", "median", "min", "max"]),
    default="mean",
    show_default=True,
    help="How the metric is summarised over the seeds.",
)
@click.option("--smallest", metavar="SETTING", help="Find the smallest of the --vary values that reaches --at-least.")
@click.option("--at-least", type=float, default=0.95, show_default=True, help="The level for --smallest.")
@click.option("--grace", type=int, help="Steps before a point may be pruned; 0 prunes nothing.  [a ninth of --steps]")
@click.option("--sampler-seed", default=0, show_default=True, help="Seed of the proposed points.")
@click.option(
    "--show",
    is_flag=False,
    flag_value=ALL,
    metavar="[ID]",
    help="Show the recorded searches instead, or the one whose id begins with this.",
)
@click.option("--top", default=10, show_default=True, help="Number of points to list.")
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the history to this file, .svg or .png.",
)
@json_option
@store_option
@worker_options
def search(
    file: str | None,
    model: str | None,
    task: str | None,
    vary: tuple[str, ...],
    show: str | None,
    top: int,
    figure: Path | None,
    as_json: bool,
    store: str,
    **given: Any,
) -> None:
    """Search for the best settings of a model on a task.

    Optuna proposes points, each is trained with several seeds, and ASHA prunes points whose validation accuracy falls
    behind others at the same training step. Searches and sweeps share finished trials. It is safe to stop (Ctrl-C) and
    to repeat: the same command continues. The accuracy at --test-length is shown too, but never used to choose. With a
    file of your own, its models and tasks can be named too, and their settings are options.

    \b
    Example: orch search --model factored --task state_machine --modulus 5 --width 64 --steps 4000
             --vary rank=1,2,4,8,16,64,128,256 --objective median --smallest rank --at-least 0.95
    """
    from orch.search.history import searches_with_code
    from orch.search.report import read_search, read_searches
    from orch.store import Store

    problems = _output_problems(top, figure)
    opened = Store.open(store)
    definitions = read_definitions(file, opened)
    if show is not None:
        if file is not None:
            problems.append("--show reads recorded searches: leave out the file, and name the search: --show ID")
        if problems:
            raise InvalidSettings(problems)
        reports = read_searches(opened, None if show == ALL else show)
        if figure is not None and len(reports) > 1:
            ids = ", ".join(report.search_id for report in reports)
            raise InvalidSettings([f"--figure draws one search and there are {len(reports)}: --show one of {ids}"])
        _print(reports, top, figure, as_json)
        for search_id in searches_with_code(opened) if show == ALL and not as_json else ():
            click.echo(f"search {search_id} is of a file of yours: orch search --show {search_id} runs its code")
        return
    if store == BUNDLED:
        raise StoreReadOnly()
    question, num_points = _question(model, task, vary, given, definitions, problems)

    from orch.search.run import run_search

    def say(text: str) -> None:
        if not given["quiet"]:
            click.echo(text, err=True)

    summary = run_search(question, num_points, opened, make_options(given), say)
    _print([read_search(opened, question, num_points)], top, figure, as_json)
    if not as_json:
        click.echo(f"{counted(summary.num_ended, 'point')} in {duration(summary.seconds)}")
        if summary.failed:
            click.echo(f"{summary.failed} failed: orch failures shows why; the same command retries them")
        if summary.stopped:
            click.echo(f"stopped: {summary.stopped}; the same command continues")
    if summary.stopped == "interrupted":
        sys.exit(exit_code())
    if summary.failed or summary.stopped:
        sys.exit(3)


def _output_problems(top: int, figure: Path | None) -> list[str]:
    problems: list[str] = []
    if top < 1:
        problems.append(f"--top {top} is not enough: use 1 or more")
    if figure is not None and figure.suffix not in (".svg", ".png"):
        problems.append(f"--figure {figure}: end it in .svg or .png")
    if figure is not None and not figure.absolute().parent.is_dir():
        problems.append(f"--figure {figure}: make the folder {figure.absolute().parent} first")
    return problems


def _question(
    model: str | None,
    task: str | None,
    vary: tuple[str, ...],
    given: dict[str, Any],
    definitions: Definitions,
    problems: list[str],
) -> tuple[SearchSpec, int]:
    """Return the search that the options describe and its number of points, or raise all problems at once."""
    from orch.search.run import default_points

    asked = {name: given.pop(name) for name in _ASKED}
    setting_names = {option.name for option in setting_options(definitions)}
    settings = given_settings({name: value for name, value in given.items() if name in setting_names})
    if protocol := asked["protocol"]:
        settings = find_protocol(protocol).merged(settings, "--")
    if model is None or task is None:
        raise InvalidSettings([*problems, "name what to train with --model and --task, or use --show"])
    if asked["points"] is not None and asked["points"] < 1:
        problems.append(f"--points {asked['points']} is not enough: use 1 or more")
    space = Space(())
    try:
        task, settings = described_task(task, settings, definitions)
        space = parse_space(vary, task, model, settings, definitions)
    except InvalidSettings as error:
        problems += error.problems
    try:
        check_options(given)
    except InvalidSettings as error:
        problems += error.problems
    question = SearchSpec(
        task=task,
        model=model,
        fixed=settings,
        space=space,
        num_seeds=asked["seeds"],
        objective=Objective(asked["metric"], asked["objective"]),
        smallest=None if asked["smallest"] is None else Level(asked["smallest"].replace("-", "_"), asked["at_least"]),
        first_rung=asked["grace"],
        sampler_seed=asked["sampler_seed"],
        definitions=definitions,
    )
    if problems := problems + question.problems():
        raise InvalidSettings(problems)
    return question, asked["points"] or default_points(question)


_ASKED = ("protocol", "seeds", "points", "metric", "objective", "smallest", "at_least", "grace", "sampler_seed")


def _print(reports: list[Any], top: int, figure: Path | None, as_json: bool) -> None:
    from orch.search.chart import draw

    if figure is not None:
        from orch.analysis.figures.saving import save
        from orch.analysis.figures.search import draw_search

        save(draw_search(reports[0]), figure)
    if as_json:
        click.echo(json.dumps([report.to_dict() for report in reports], indent=2))
        return
    for report in reports:
        title = f"Search {report.search_id}: {report.question.description}"
        if report.results:
            print_rows(report.rows(top), title=title)
        else:
            click.echo(f"{title}: no point has a result yet")
        for line in draw(report.results, f"{report.question.objective.description}, point by point"):
            click.echo(line)
        for line in report.conclusion():
            click.echo(printable(line))
        if report.under_way:
            click.echo(f"{_not_finished(len(report.under_way))}: the same command continues")


def _not_finished(count: int) -> str:
    return f"{counted(count, 'point')} {'is' if count == 1 else 'are'} not finished"
