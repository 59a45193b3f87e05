"""`orch slurm`: run sweeps as an array of Slurm tasks."""

from dataclasses import replace
from typing import Any

import click

from orch.cli._on import given_options, given_store, say
from orch.cli._options import sweep_scale_options, where_option, writable_store_option
from orch.cli._output import echo
from orch.cli._run import check_options, sweep_options
from orch.cli._sweeps import say_note, sweeps_argument
from orch.core.counted import counted
from orch.core.errors import InvalidSettings, OrchError
from orch.sweeps.protocols import options_of

OF_SBATCH = ("gpus", "time", "partition", "account", "extra")
NOT_OF_SWEEP = (*OF_SBATCH, "store", "scale", "protocol", "tasks", "cpus", "dry_run")
"""Options that are not passed on to `orch sweep` as they are."""


@click.command()
@sweeps_argument(required=True)
@sweep_scale_options
@where_option
@writable_store_option
@click.option(
    "--tasks", default=8, show_default=True, help="Tasks of the array, at most one for each trial that is left."
)
@click.option("--gpus", metavar="[TYPE:]NUMBER", help="GPUs of each task.  [none]")
@click.option("--time", metavar="TIME", help="Time limit of a task, such as 12:00:00 or 2-00.  [the partition's]")
@click.option("--partition", help="Partition; sinfo lists them.  [the default one]")
@click.option("--account", help="Account that is charged.  [your default]")
@click.option(
    "--sbatch",
    "extra",
    multiple=True,
    metavar="OPTION",
    help="Another option of sbatch, such as --sbatch=--mem=32G. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Print the script and submit nothing.")
@sweep_options
@click.pass_context
def slurm(
    context: click.Context,
    /,
    sweeps: tuple[str, ...],
    scale: str | None,
    where: tuple[str, ...],
    store: str,
    tasks: int,
    dry_run: bool,
    **given: Any,
) -> None:
    """Run sweeps as an array of Slurm tasks, which share the work.

    Run it on a login node. Every task runs orch sweep --join on one node, with as many cores as --cpus says; the store
    must be a folder that all nodes mount, or a bucket. Tasks start and end as Slurm has room for them. Two minutes
    before its time limit, or when it is preempted, a task writes checkpoints and returns to the queue; scancel ends it
    for good and loses at most the minute since the last checkpoint. To add tasks, or to go on later, repeat the
    command. --max-hours and --max-dollars are those of each task. Your own sweep file is recorded in the store as it
    is now.

    \b
    Example: orch slurm main --scale paper --partition gpu --gpus 4 --time 12:00:00 --tasks 16
    """
    from orch.cluster.slurm_array import SlurmArray, array_script, check_array, shared_place, submit
    from orch.planning.packs import packed
    from orch.running.requests import Request, record
    from orch.store import Store, scrub
    from orch.usercode import name_sweeps
    from orch.usercode.probe import make_probe

    asked = {name: given.pop(name) for name in OF_SBATCH}
    check_options(given)
    gpus_per_trial = given["gpus_per_trial"]
    array = SlurmArray(**asked, tasks=tasks, cpus=given["cpus"], gpus_per_trial=gpus_per_trial)
    problems = check_array(array)
    if given["device"] == "cuda" and array.gpus is None:
        problems.append("--device cuda needs GPUs: add --gpus, or leave it out")
    if problems:
        raise InvalidSettings(problems)
    place = shared_place(store)
    opened = Store.open(place)
    named = name_sweeps(sweeps, opened, scale)
    say_note(named)
    request = Request.of(named, where)
    plan = request.plan(opened, make_probe(say))
    if not plan.trials:
        raise OrchError(f"no trial matches {request.description}: change --where; orch plan shows all trials")
    left = sum(planned.left for planned in plan.trials)
    if not left:
        echo("nothing can start yet" if plan.num_waiting else "nothing to do: every trial has its result")
        return
    array = replace(array, tasks=min(tasks, left))
    words = ["sweep", *request.sweeps, *options_of(request.scale), *given_options(context, NOT_OF_SWEEP)]
    if scrub(place) == place or given_store(context):
        words += ["--store", place]  # else it stays in the environment, which the tasks inherit
    script = array_script(array, words)
    if dry_run:
        echo(script, nl=False)
        return
    opened.verify()
    record(opened, request, packed(plan, given["pack"]))  # tasks find a sweep of the user's own by its name
    job = submit(script)
    to_do = f"{counted(left, 'trial')} to do on {counted(array.tasks, 'task')}"
    echo(f"submitted array {job}: {to_do}; store {opened.location}")
    echo(f"orch status shows the trials, squeue the tasks, and scancel {job} ends them")
