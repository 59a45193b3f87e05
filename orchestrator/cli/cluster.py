"""`orch cluster`: launcher files, which describe the machines that sweeps run on."""

from pathlib import Path

import click

from orch.cli._options import confirm
from orch.cli._output import echo
from orch.cluster.check import check_launcher
from orch.cluster.launcher import Launcher
from orch.cluster.prices import DATED, HourlyCost, dollars, gpus_per_worker, hourly_cost
from orch.core.counted import counted
from orch.core.errors import InvalidSettings


@click.group()
def cluster() -> None:
    """Make and check launcher files for `ray up`.

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
    _check(file)


@cluster.command()
@click.argument("provider", type=click.Choice(["aws"]))
@click.option("--name", default="orch", show_default=True, help="Name of the cluster, and of what is made for it.")
@click.option("--region", help="Region of AWS.  [that of your AWS configuration, else us-east-1]")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Most worker machines at a time.  [4; those of the file if it exists]"
)
@click.option("--instance-type", help="Instance type of the workers.  [p4d.24xlarge; that of the file if it exists]")
@click.option(
    "--spot/--no-spot",
    default=None,
    help="Start spot machines, and on-demand ones only while there are none.  [--spot; as the file if it exists]",
)
@click.option("--ssh-from", metavar="CIDR", help="Addresses that ssh is let in from.  [your public address]")
@click.option(
    "--bucket",
    help="Bucket for the store; one of your own is used as it is.  [a new one; that of the file if it exists]",
)
@click.option(
    "--image",
    help="Image of the machines: its id, or a parameter of AWS's parameter store.  [AWS's newest Deep Learning Base"
    " image; that of the file if it exists]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("aws.yaml"),
    show_default=True,
    help="Launcher file to write.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
def init(
    provider: str,
    name: str,
    region: str | None,
    workers: int | None,
    instance_type: str | None,
    spot: bool | None,
    ssh_from: str | None,
    bucket: str | None,
    image: str | None,
    output: Path,
    dry_run: bool,
) -> None:
    """Make what a cluster needs in your cloud account, and write its launcher file.

    On AWS: a private bucket for the store, a security group that lets in ssh from your address only, a key pair, and a
    role each for the head and the workers with no more rights than they need. What is there already is used, so the
    command can be repeated; after a failure it goes on where it stopped. It starts no machine and costs nothing until
    `ray up`. Run it from the project's folder. orch cluster destroy removes what it made.

    \b
    Example: orch cluster init aws --workers 2 --dry-run
    """
    from orch.cluster.amazon.cluster import Wanted, init_cluster

    wanted = Wanted(
        name=name,
        output=output,
        max_workers=workers,
        instance_type=instance_type,
        spot=spot,
        region=region,
        ssh_from=ssh_from,
        bucket=bucket,
        image=image,
    )
    changes = init_cluster(wanted, echo, dry_run)
    if dry_run:
        echo(f"nothing was changed: {counted(len(changes), 'change')} would be made")
        return
    _check(output)
    echo(f"next: ray up {output}, then orch sweep all --on {output}")


@cluster.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--results", is_flag=True, help="Remove the bucket even if it has results.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
def destroy(file: Path, results: bool, yes: bool, dry_run: bool) -> None:
    """Remove what orch cluster init made for the cluster of a launcher file, and nothing else.

    A bucket with results is kept, unless --results is given. Run `ray down` first. The launcher file stays.

    \b
    Example: orch cluster destroy aws.yaml
    """
    from orch.cluster.amazon.cluster import destroy_cluster

    changes = destroy_cluster(file, results, echo, dry_run=True)
    if dry_run or not changes:
        echo("nothing was changed" if changes else "nothing is left to remove")
        return
    confirm(f"Remove {'it' if len(changes) == 1 else f'these {len(changes)}'}?", yes)
    destroy_cluster(file, results, echo)


def _check(file: Path) -> None:
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
    return f"{size}, {dollars(idle.low)} an hour idle and {_range(cost)} with all of them ({DATED})"


def _range(cost: HourlyCost) -> str:
    low, high = dollars(cost.low), dollars(cost.high)
    return low if low == high else f"{low} to {high}"
