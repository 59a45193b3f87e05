"""`orch keep`: count results trained before an edit for the present code."""

import click

from orch.cli._options import confirm, writable_store_option
from orch.cli._output import echo
from orch.core.errors import OrchError


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.py…")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@writable_store_option
def keep(files: tuple[str, ...], yes: bool, store: str) -> None:
    """Count results from before an edit of your file.

    A trial is identified by the code of its model and task, so trials done before an edit do not count after it. With
    this command you declare that the edit does not change the numbers: the edited models and tasks count as they were.
    The decision is recorded in the store. It ends with your next edit of the same model or task. If it was a mistake,
    withdraw the results with orch discard: their trials run again, with the present code.

    \b
    Example: orch keep my_sweep.py
    """
    from orch.running.requests import record, recorded_requests
    from orch.store import Store
    from orch.usercode import name_sweeps
    from orch.usercode.earlier_results import (
        asked_trials,
        describe_edits,
        earlier_results,
        num_counted,
        revisions_to_keep,
        sentence,
    )
    from orch.usercode.kept import keep as record_decision
    from orch.usercode.naming import own_names, recordings

    opened = Store.open(store)
    named = name_sweeps(_checked(files), opened)
    trials = asked_trials(named.names, named.catalogue, opened)
    earlier = earlier_results(trials, opened)
    if not earlier:
        raise OrchError(
            f"no trial of {', '.join(files)} in {opened.location} was done before an edit: there is nothing to keep"
        )
    revisions = revisions_to_keep(earlier)
    before, after = (num_counted(trials, opened, chosen) for chosen in ((), revisions))
    if after <= before:
        raise OrchError(
            f"no more trials would count with the earlier results ({after:,}) than count now ({before:,}): run orch"
            " sweep, or withdraw the earlier ones with orch discard --before-edit"
        )
    echo(sentence(describe_edits(earlier, opened)))
    confirm(f"Count earlier results for the present code ({before:,} → {after:,} trials done)?", yes)
    for code in named.codes:
        record_decision(opened, code, revisions)
    known = {name for values in recordings(opened) for name in own_names(values)}
    for request in recorded_requests(opened, known.intersection(named.names)) if known & {*named.names} else ():
        if any(code.kept for code in request.code):
            record(opened, request, request.plan(opened))  # so that orch status counts the same trials
    echo(f"{after:,} trials count as done for the present code, {before:,} did before")


def _checked(files: tuple[str, ...]) -> tuple[str, ...]:
    if problems := [file for file in files if not file.endswith(".py")]:
        raise OrchError(f"{', '.join(problems)} is not a file of yours: name one that ends in .py")
    return files
