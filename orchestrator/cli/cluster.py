"""`orch cluster`: launcher files, which describe the machines that sweeps run on."""

from pathlib import Path

import click

from orch.cli._output import echo
from orch.cluster.check import check_launcher
from orch.cluster.launcher import Launcher
from orch.cluster.prices import DATED, gpus_per_worker, hourly_cost
from orch.core.counted import counted
from orch.core.errors import InvalidSettings


@click.group()
def cluster() -> None:
    """Check launcher files for `ray up`.

    \b
    Example: orch cluster check cluster/a100.yaml
    """


@cluster.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
def check(file: Path) -> None:
    """Check a launcher file before `ray up`, without using the network.

    All problems are listed at once: placeholders that are left, versions that differ from those here, GPUs that the
    machines do not have, a store that not all machines reach, missing protection. In a Slurm script, only placeholders,
    store and protection are checked.

    \b
    Example: orch cluster check cluster/a100.yaml
    """
    report = check_launcher(file)
    for text in report.warnings:
        echo(f"warning: {text}", err=True)
    if report.errors:
        raise InvalidSettings(report.errors)
    echo(f"{file} is right{_size(report.launcher)}; {counted(len(report.warnings), 'warning')}")


def _size(launcher: Launcher) -> str:
    if launcher.provider == "local":
        return f": {counted(1 + len(launcher.worker_addresses), 'machine')}"
    workers = launcher.max_workers or 0
    size = (
        f": up to {counted(workers, 'worker')} with {counted(gpus_per_worker(launcher), 'GPU')} each"
        if launcher.workers
        else ""
    )
    cost = hourly_cost(launcher, workers)
    if cost is None:
        return size
    idle = hourly_cost(launcher, 0)
    assert idle is not None
    return f"{size}, ${idle.low:,.2f} an hour idle and ${cost.low:,.0f} to ${cost.high:,.0f} with all of them ({DATED})"
