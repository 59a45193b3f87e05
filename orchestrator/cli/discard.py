"""`orch discard`: withdraw results, so that their trials run again."""

from typing import TYPE_CHECKING

import click

from orch.cli._options import confirm, where_option, writable_store_option
from orch.cli._output import echo
from orch.core.counted import counted
from orch.core.errors import InvalidSettings

if TYPE_CHECKING:
    from orch.store import Store


@click.command()
@where_option
@click.option("--trial", "trial_ids", multiple=True, metavar="ID", help="A trial to withdraw. May be repeated.")
@click.option(
    "--before-edit",
    "files",
    multiple=True,
    metavar="FILE.py",
    help="Results of your file's trials that were done before it was edited. May be repeated.",
)
@click.option("--reason", required=True, help="Why they are withdrawn; recorded in the store.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@writable_store_option
def discard(
    where: tuple[str, ...], trial_ids: tuple[str, ...], files: tuple[str, ...], reason: str, yes: bool, store: str
) -> None:
    """Mark results as withdrawn.

    Nothing is deleted. The next sweep that has these trials runs them again.

    \b
    Example: orch discard --where model=mamba,modulus=5 --reason "wrong kernel"
    """
    from orch.store import Store
    from orch.store.matching import trials_to_discard

    if not where and not trial_ids and not files:
        raise InvalidSettings(["name the results to withdraw: --where model=mamba, --trial ID, or --before-edit FILE"])
    if files and (where or trial_ids):
        raise InvalidSettings(["--before-edit names the results itself: leave out --where and --trial"])
    opened = Store.open(store).check_exists()
    chosen = _before_edits(opened, files) if files else trials_to_discard(opened, list(where), list(trial_ids))
    if not chosen:
        echo("no result matches: nothing was withdrawn")
        return
    confirm(f"Withdraw {counted(len(chosen), 'result')}?", yes)
    echo(f"{counted(opened.discard(chosen, reason), 'result')} withdrawn")


def _before_edits(store: "Store", files: tuple[str, ...]) -> list[str]:
    """Return the ids of the results that trials of these files had before an edit, at any scale."""
    from orch.usercode import name_sweeps
    from orch.usercode.earlier_results import asked_trials, earlier_results

    named = name_sweeps(files, store)
    found = earlier_results(asked_trials(named.names, named.catalogue, store), store)
    return sorted({each for result in found for each in result.all_ids})
