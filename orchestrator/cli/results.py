"""`orch results`: accuracies, summarised by model and task."""

import click

from orch.cli._options import store_option, sweep_scale_option, where_option
from orch.cli._output import check_output, output_options, write_table
from orch.cli._sweeps import say_note, sweeps_argument
from orch.core.errors import OrchError
from orch.sweeps.scales import LAPTOP
from orch.sweeps.where import ALIASES

METRICS = ("ood", "validation", "accuracy_100", "accuracy_200", "steps_trained", "seconds")


@click.command()
@sweeps_argument()
@sweep_scale_option
@click.option(
    "--by",
    default="model,variant,task,modulus",
    show_default=True,
    metavar="SETTING,…",
    help="Settings of a trial to group by; each combination is a row.",
)
@where_option
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="ood",
    show_default=True,
    help="What to summarise: accuracy at the test length, on the validation set, at 100 or 200 inputs (0 is chance, 1"
    " is perfect), training steps, or seconds.",
)
@store_option
@output_options
def results(
    sweeps: tuple[str, ...],
    scale: str | None,
    by: str,
    where: tuple[str, ...],
    metric: str,
    store: str,
    format: str | None,
    output: str | None,
) -> None:
    """Summarise the results by model and task.

    All results of the store are used, or those of the named sweeps at --scale: built-in sweeps, your own files, or the
    names that orch status shows. Each row has the best over learning
    rates and seeds, as in the paper, and the mean over seeds at the learning rate with the best accuracy at 100 inputs.
    A remark marks rows that are incomplete or mix trials with different settings. --by groups by other settings.

    \b
    Example: orch results main --scale laptop --where modulus=5
    """
    from orch.analysis.results import for_people
    from orch.analysis.results import results as summarise
    from orch.analysis.study import Study
    from orch.store import Store
    from orch.usercode import name_sweeps

    chosen_format = check_output(format, output)
    written = [name.strip().replace("-", "_") for name in by.split(",") if name.strip()]
    names = list(dict.fromkeys(ALIASES.get(name, name) for name in written))
    named = name_sweeps(sweeps, Store.open(store), scale)
    say_note(named)
    study = Study(store, named.catalogue)
    found = summarise(study, names, where, metric, named.names, named.scale or LAPTOP.name)
    if not found.num_rows:
        hint = f"no trial has {' and '.join(where)}: ask for others" if where else "run orch sweep first"
        raise OrchError(f"there are no results at {study.store.location}: {hint}")
    shown = for_people(found, names) if chosen_format in ("table", "markdown") else found
    write_table(shown.rename_columns([_written_as(name, written) for name in shown.column_names]), format, output)


def _written_as(name: str, written: list[str]) -> str:
    """Return a setting as the user wrote it: `seed` for `init_seed`, if that is what was asked for."""
    return next((alias for alias, field in ALIASES.items() if field == name and alias in written), name)
