"""`orch merge`: other people's results in one store."""

import sys

import click

from orch.cli._options import writable_store_option
from orch.cli._output import echo
from orch.core.counted import counted


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="STORE…")
@writable_store_option
@click.option(
    "--verify",
    "num_verified",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="First train N trials of each STORE again on this CPU and compare them bit for bit; merge nothing if one"
    " differs without a known reason.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the random choice of these trials.")
def merge(sources: tuple[str, ...], store: str, num_verified: int, seed: int) -> None:
    """Add the results of other stores to one store.

    The column source of the view trials names the store that a result was merged from. Trials are known by their ids:
    repeat the command at any time; what is there stays as it is. The other stores are only read, and their code and
    unfinished sweeps are left out. A damaged or edited store is refused.

    \b
    Example: orch merge ../alice/runs s3://lab/bob --store runs --verify 5
    """
    from orch.store import Store
    from orch.store.merging import compare_stores, open_source, write_merge

    target = Store.open(store)
    merges = [compare_stores(open_source(each), target) for each in sources]
    refuted = 0
    for each in merges if num_verified else ():
        from orch.running.verification import this_machine, verify

        echo(f"{each.source.location}: training {num_verified} again on this {this_machine()}, seed {seed}")
        for verified in verify(each.source, num_verified, seed):
            echo(f"  {verified.trial.id} {verified.trial.label}: {verified}")
            refuted += verified.refuted
    if refuted:
        echo(f"nothing was merged: {counted(refuted, 'trial')} cannot be reproduced", err=True)
        sys.exit(1)
    for each in merges:
        now = compare_stores(each.source, target) if len(merges) > 1 else each
        write_merge(now, target)
        added = f"{counted(len(now.new_ids), 'new trial')}, {now.num_known:,} already there"
        other = f", {now.num_different:,} of them with other numbers" if now.num_different else ""
        echo(f"{now.source.location}: {added}{other}")
