"""`orch results`: what was found, summed up."""

import click

from orch.cli._options import scale_option, store_option, where_option
from orch.cli._output import check_output, output_options, write_table

METRICS = ("ood", "validation", "accuracy_100", "accuracy_200", "steps_trained", "seconds")


@click.command()
@click.argument("sweeps", nargs=-1, metavar="[SWEEP…|all]")
@scale_option
@click.option(
    "--by",
    default="model,variant,task,modulus",
    show_default=True,
    metavar="SETTING,…",
    help="The settings that make a row: any of a trial's.",
)
@where_option
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="ood",
    show_default=True,
    help="What to sum up: accuracy at the test length, on the validation set or at 100 inputs (0 is chance, 1 is"
    " perfect), training steps, or seconds.",
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
    """Show the results by model and task, or by any settings: the best, and the mean over seeds. Of everything that the
    store has; or, named, of these sweeps at --scale.

    The best is over learning rates and seeds, as in the paper. The mean is over the seeds of the learning rate that
    is chosen by accuracy at 100 inputs. Rows that are not complete, or mix trials of different settings, say so.

    \b
    Example: orch results main --scale laptop --where modulus=5
    """
    from orch.analysis.results import for_people
    from orch.analysis.results import results as summed_up
    from orch.analysis.study import Study
    from orch.core.errors import OrchError
    from orch.usercode import read_sweeps

    told = check_output(format, output)
    names = list(dict.fromkeys(name.strip().replace("-", "_") for name in by.split(",") if name.strip()))
    sweep_names, catalogue = read_sweeps(sweeps)
    study = Study(store, catalogue)
    found = summed_up(study, names, where, metric, sweep_names, scale)
    if not found.num_rows:
        hint = f"no trial has {' and '.join(where)}: ask for others" if where else "run orch sweep first"
        raise OrchError(f"there are no results at {study.store.location}: {hint}")
    write_table(for_people(found, names) if told in ("table", "markdown") else found, format, output)
