"""The line that commands print about results of earlier versions of a user's file."""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from orch.cli._on import given_store
from orch.cli._sweeps import SUFFIX

if TYPE_CHECKING:
    from orch.store import Store
    from orch.sweeps.trial import Trial


def find_edits(trials: "Iterable[Trial]", store: "Store") -> list[dict[str, Any]]:
    """Return the edits that keep finished trials of a user's code from counting for these trials."""
    from orch.usercode.earlier_results import describe_edits, earlier_results

    return describe_edits(earlier_results(trials, store), store)


def edits_line(edits: Sequence[dict[str, Any]], sweeps: Iterable[str]) -> str:
    """Return a line that says which results do not count, with the commands to withdraw or to keep them."""
    from orch.usercode.earlier_results import sentence

    store = given_store(click.get_current_context())
    # A sweep that was named as the store knows it has no path here: the user puts it in.
    files = [shlex.quote(name) for name in sweeps if name.endswith(SUFFIX)] or ["FILE.py"]
    option = f" --store {shlex.quote(store)}" if store else ""
    before = " ".join(f"--before-edit {file}" for file in files)
    return (
        f"{sentence(edits)}. Withdraw them with `orch discard {before} --reason edited{option}`, or count them for the"
        f" present code with `orch keep {' '.join(files)}{option}`"
    )
