"""`orch discard`: withdraw results, so that their trials run again."""

import click

from orch.cli._options import where_option, writable_store_option
from orch.core.counted import counted
from orch.core.errors import InvalidSettings


@click.command()
@where_option
@click.option("--trial", "trial_ids", multiple=True, metavar="ID", help="A trial to withdraw. May be repeated.")
@click.option("--reason", required=True, help="Why they are withdrawn; recorded in the store.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@writable_store_option
def discard(where: tuple[str, ...], trial_ids: tuple[str, ...], reason: str, yes: bool, store: str) -> None:
    """Mark results as withdrawn.

    Nothing is deleted. The next sweep that has these trials runs them again.

    \b
    Example: orch discard --where model=mamba,modulus=5 --reason "wrong kernel"
    """
    from orch.store import Store
    from orch.store.matching import trials_to_discard

    if not where and not trial_ids:
        raise InvalidSettings(["name the results to withdraw: --where model=mamba, or --trial ID"])
    opened = Store.open(store).check_exists()
    chosen = trials_to_discard(opened, list(where), list(trial_ids))
    if not chosen:
        click.echo("no result matches: nothing was withdrawn")
        return
    if not yes:
        click.confirm(f"Withdraw {counted(len(chosen), 'result')}?", abort=True)
    click.echo(f"{counted(opened.discard(chosen, reason), 'result')} withdrawn")
