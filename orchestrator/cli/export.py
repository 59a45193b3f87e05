"""`orch export`: results for other tools."""

from pathlib import Path

import click

from orch.cli._options import store_option, sweep_scale_options, where_option
from orch.cli._output import echo
from orch.cli._sweeps import say_note, sweeps_argument
from orch.core.counted import counted
from orch.sweeps.scales import LAPTOP


@click.command()
@click.argument("target", metavar="TARGET")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@sweeps_argument()
@sweep_scale_options
@where_option
@store_option
def export(
    target: str, folder: Path, sweeps: tuple[str, ...], scale: str | None, where: tuple[str, ...], store: str
) -> None:
    """Write finished trials for another tool.

    FOLDER gets their settings, scores, curves and where they ran. TARGET is csv, parquet, huggingface-datasets,
    tensorboard, mlflow or wandb (offline). All finished trials of the store are written, or those of the named sweeps
    at --scale. A trial is known by its id: repeat the command at any time to add what is new; nothing is written twice
    or changed. mlflow and wandb need packages of their own.

    \b
    Example: orch export tensorboard board main --where model=lstm --store bundled
    """
    from orch.analysis.exports import export as write
    from orch.analysis.study import Study
    from orch.store import Store
    from orch.usercode import name_sweeps

    named = name_sweeps(sweeps, Store.open(store), scale)
    say_note(named)
    done = write(Study(store, named.catalogue), target, folder, named.names, named.scale or LAPTOP.name, where)
    had = f"; {counted(done.num_known, 'trial')} already there" if done.num_known else ""
    echo(f"{folder}: {counted(done.num_new, 'new trial')}{had}")
