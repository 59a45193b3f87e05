"""Arguments that name sweeps and files, and their completion in a shell."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from orch.cli._options import DEFAULT_STORE, Decorator
from orch.cli._output import echo
from orch.core.errors import InvalidSettings
from orch.core.reading import RECORD_BYTES, parse_json, read_text
from orch.sweeps.catalogue import BUILT_IN, Catalogue
from orch.sweeps.registry import ALL, SWEEPS

if TYPE_CHECKING:
    from orch.store import Store
    from orch.usercode import NamedSweeps

SUFFIX = ".py"
T = TypeVar("T")


def sweeps_argument(required: bool = False) -> Decorator:
    """Return the argument that names sweeps: built-in ones, files, or sweeps that the store has recorded."""
    names = "SWEEP…|FILE.py…|all"
    return click.argument(
        "sweeps",
        nargs=-1,
        required=required,
        metavar=names if required else f"[{names}]",
        shell_complete=complete_sweeps,
    )


def _complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return complete_files(incomplete)


file_argument = click.argument("file", required=False, metavar="[FILE.py]", shell_complete=_complete_file)
"""A file of the user, whose models and tasks can be named like built-in ones."""


def read_definitions(path: str | None, store: "Store | None" = None) -> Catalogue:
    """Return the built-in models, tasks and sweeps, and those of a user's file.

    With a store, earlier results count for edited code where `orch keep` has recorded that in it.
    """
    if path is None:
        return BUILT_IN
    if not path.endswith(SUFFIX):
        raise InvalidSettings([f"{path} is not a Python file: name a file that ends in {SUFFIX}, or leave it out"])
    from orch.usercode import name_sweeps

    return name_sweeps([path], store).catalogue


def own_first(known: Mapping[str, T], built_in: Mapping[str, T]) -> dict[str, T]:
    """Return the same mapping with the names that are not built in at the front."""
    return {name: each for name, each in known.items() if name not in built_in} | dict(known)


def one_name(names: Sequence[str], kind: str) -> str | None:
    """Return the name of a model or task among arguments that may also name a file; None if there is none."""
    found = [name for name in names if not name.endswith(SUFFIX)]
    if len(found) > 1 or len(names) - len(found) > 1:
        raise InvalidSettings([f"{' '.join(names)} is more than one {kind} or file: name one of each"])
    return found[0] if found else None


def say_note(named: "NamedSweeps") -> None:
    """Say on standard error which recording of a sweep was taken, if there are several."""
    if named.note:
        echo(named.note, err=True)


def _complete_recorded(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(_recorded_names(context)) if name.startswith(incomplete)]


recorded_argument = click.argument("sweeps", nargs=-1, metavar="[SWEEP…]", shell_complete=_complete_recorded)
"""The sweeps of a store, by the names that orch status shows."""


def complete_sweeps(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of sweeps and the Python files that begin with what was typed."""
    names = sorted({*SWEEPS, ALL, *_recorded_names(context)})
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found + complete_files(incomplete, others=bool(found))


def complete_files(incomplete: str, others: bool = False) -> list[CompletionItem]:
    """Return the Python files that begin with what was typed.

    If nothing else matches either, the shell completes paths itself, which handles folders better.
    """
    folder = Path(incomplete).parent if not incomplete.endswith("/") else Path(incomplete)
    start = "" if str(folder) == "." and not incomplete.startswith("./") else f"{folder}/"
    try:
        paths = [f"{start}{path.name}" for path in sorted(folder.glob(f"*{SUFFIX}"))]
    except OSError:
        paths = []
    found = [CompletionItem(path) for path in paths if path.startswith(incomplete)]
    return found if found or others else [CompletionItem(incomplete, type="file")]


def _recorded_names(context: click.Context) -> set[str]:
    """Return the names of the sweeps recorded in a store that is a folder, without loading what reads stores."""
    folder = Path(str(context.params.get("store") or DEFAULT_STORE)).expanduser() / "sweeps"
    names: set[str] = set()
    try:
        for path in folder.glob("*.json"):
            names.update(map(str, parse_json(read_text(path, RECORD_BYTES))["sweeps"]))
    except (OSError, ValueError, KeyError, TypeError):
        return names
    return names
