"""`orch results`: accuracies, summarised by model and task."""

import click

from orch.cli._options import scale_option, store_option, where_option
from orch.cli._output import check_output, output_options, write_table
from orch.core.errors import OrchError

METRICS = ("ood", "validation", "accuracy_100", "accuracy_200", "steps_trained", "seconds")


@click.command()
@click.argument("sweeps", nargs=-1, metavar="[SWEEP…|all]")
@scale_option
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
    scale: str,
    by: str,
    where: tuple[str, ...],
    metric: str,
    store: str,
    format: str | None,
    output: str | None,
) -> None:
    """Summarise the results by model and task.

    All results of the store are used, or those of the named sweeps at --scale. Each row has the best over learning
    rates and seeds, as in the paper, and the mean over seeds at the learning rate with the best accuracy at 100 inputs.
    A remark marks rows that are incomplete or mix trials with different settings. --by groups by other settings.

    \b
    Example: orch results main --scale laptop --where modulus=5
    """
    from orch.analysis.results import for_people
    from orch.analysis.results import results as summarise
    from orch.analysis.study import Study
    from orch.store import Store
    from orch.usercode import read_sweeps

    chosen_format = check_output(format, output)
    names = list(dict.fromkeys(name.strip().replace("-", "_") for name in by.split(",") if name.strip()))
    sweep_names, catalogue = read_sweeps(sweeps, Store.open(store))
    study = Study(store, catalogue)
    found = summarise(study, names, where, metric, sweep_names, scale)
    if not found.num_rows:
        hint = f"no trial has {' and '.join(where)}: ask for others" if where else "run orch sweep first"
        raise OrchError(f"there are no results at {study.store.location}: {hint}")
    write_table(for_people(found, names) if chosen_format in ("table", "markdown") else found, format, output)
