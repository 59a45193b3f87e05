"""`orch results`: accuracies, summarised by model and task."""

from typing import TYPE_CHECKING

import click

from orch.analysis.statistics import BEST_OF
from orch.cli._options import store_option, sweep_scale_options, where_option
from orch.cli._output import check_output, output_options, write_table
from orch.cli._sweeps import say_note, sweeps_argument
from orch.core.errors import OrchError
from orch.sweeps.scales import LAPTOP
from orch.sweeps.where import ALIASES

if TYPE_CHECKING:
    from pyarrow import Table


@click.command()
@sweeps_argument()
@sweep_scale_options
@click.option(
    "--by",
    default="",
    metavar="SETTING,…",
    help="Settings of a trial to group by; each combination is a row. variant and problem are the settings of the model"
    " and of the task in their own words.  [default: model,variant,task,modulus, or problem for modulus if a task has"
    " its own words]",
)
@where_option
@click.option(
    "--metric",
    default="ood",
    show_default=True,
    metavar="METRIC",
    help="What to summarise: ood (accuracy at the test length), validation, accuracy_N (at N inputs, for any tested N),"
    " where 0 is chance and 1 is perfect; horizon_90 or horizon_99 (the longest tested number of inputs up to which the"
    " accuracy is at least 0.90 or 0.99); steps_trained or seconds.",
)
@click.option(
    "--spread",
    type=click.Choice(["sd", "se", "ci", "bootstrap"]),
    default="sd",
    show_default=True,
    help="What stands after ±, over the seeds: standard deviation, standard error of the mean, or its 95% confidence"
    " interval by Student's t; or the ends of its 95% bootstrap interval. A single seed has none.",
)
@click.option(
    "--best-of",
    default=BEST_OF,
    show_default=True,
    metavar="N",
    help="Also give the expected best of this many trials, so that rows with different numbers of trials compare.",
)
@store_option
@output_options
def results(
    sweeps: tuple[str, ...],
    scale: str | None,
    by: str,
    where: tuple[str, ...],
    metric: str,
    spread: str,
    best_of: int,
    store: str,
    format: str | None,
    output: str | None,
) -> None:
    """Summarise the results by model and task.

    All results of the store are used, or those of the named sweeps at --scale: built-in sweeps, your own files, or the
    names that orch status shows. Each row has the best over learning rates and seeds, as in the paper, and the mean
    over the seeds of one learning rate, with how many of them learn. That rate is chosen at the length named in the
    column "chosen at": 100 inputs if that was measured and is shorter than the test; else the longest measured length
    of at most half the test length; else in validation. What was not measured is missing. A remark marks rows that are
    incomplete or mix trials with different settings. --by groups by other settings.

    \b
    Example: orch results main --scale laptop --where modulus=5 --spread ci --format latex
    """
    from orch.analysis.results import default_settings
    from orch.analysis.results import results as summarise
    from orch.analysis.results_for_people import caption, for_paper, for_people
    from orch.analysis.spread import Spread
    from orch.analysis.study import Study
    from orch.store import Store
    from orch.usercode import name_sweeps

    chosen_format = check_output(format, output)
    named = name_sweeps(sweeps, Store.open(store), scale)
    say_note(named)
    written = [name.strip().replace("-", "_") for name in by.split(",") if name.strip()]
    study = Study(store, named.catalogue)
    names = list(dict.fromkeys(ALIASES.get(name, name) for name in written)) or list(default_settings(study))
    found = summarise(study, names, where, metric, named.names, named.scale or LAPTOP.name, Spread(spread), best_of)
    if not found.num_rows:
        hint = f"no trial has {' and '.join(where)}: ask for others" if where else "run orch sweep first"
        raise OrchError(f"there are no results at {study.store.location}: {hint}")
    if chosen_format in ("table", "markdown", "latex"):
        shown = for_people(found, names, metric, Spread(spread), best_of)
        shown = for_paper(shown) if chosen_format == "latex" else shown
        about = caption(found, metric, Spread(spread), best_of)
        write_table(_as_written(shown, written), format, output, caption=about, label="results")
    else:
        write_table(_as_written(found, written), format, output)


def _as_written(table: "Table", written: list[str]) -> "Table":
    """Return a table whose settings are called as the user wrote them, such as `seed` for `init_seed`."""
    names = {field: alias for alias, field in ALIASES.items() if alias in written}
    return table.rename_columns([names.get(name, name) for name in table.column_names])
