"""Options that several commands share."""

import contextlib
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from orch.core.atomic_write import refuse_link
from orch.core.errors import OrchError, StoreReadOnly, UnsafePath
from orch.core.printable import printable
from orch.sweeps.protocols import PROTOCOLS, scale_under
from orch.sweeps.scales import LAPTOP, SCALES

Command = Callable[..., Any]
"""A function that click turns into a command."""
Decorator = Callable[[Command], Command]

DEFAULT_STORE = "runs"
BUNDLED = "bundled"
"""The same name as in orch.store.bundled, whose import would load pyarrow for a help text."""


def confirm(question: str, yes: bool) -> None:
    """Ask the user, unless `--yes` was given; raise an error that says so if the answer is no or nobody can answer."""
    try:
        agreed = yes or click.confirm(printable(question), err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        remedy = "repeat the command with --yes"
        raise OrchError(f"nothing was changed, because there is no terminal to ask for consent: {remedy}") from None
    if not agreed:
        raise OrchError("nothing was changed, because the answer was no: repeat the command to be asked again")


WRITTEN = (".csv", ".html", ".json", ".md", ".parquet", ".tex", ".txt")
"""Endings of the files that --output writes, and replaces."""


class OutputPath(click.Path):
    """A file or a folder to write. What must not be replaced is refused before any work starts.

    That is a symbolic link and, if `endings` are given, a file that has none of them, such as a program.
    """

    def __init__(self, *, endings: tuple[str, ...] | None = None, **options: Any):
        super().__init__(**options)
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        option, path = "" if param is None else param.opts[0], Path(value)
        with contextlib.suppress(OSError):  # a name that cannot be looked up is no file
            refuse_link(path, option)
            if self._endings and path.is_file() and path.suffix.lower() not in self._endings and path.stat().st_size:
                raise UnsafePath(
                    f"{option} {path} is there and ends in none of {', '.join(self._endings)}:"
                    " name another file, or delete it"
                )
        return super().convert(value, param, ctx)


def _writable(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value == BUNDLED:
        raise StoreReadOnly()
    return value


_SCALES = "; ".join(f"{scale.name}: {scale.about}" for scale in SCALES.values()) + "."


def _scale_option(default: str) -> Decorator:
    return click.option("--scale", type=click.Choice(list(SCALES)), default=default, show_default=True, help=_SCALES)


scale_option = _scale_option("laptop")
paper_scale_option = _scale_option("paper")

protocol_option = click.option(
    "--protocol",
    type=click.Choice(list(PROTOCOLS)),
    help="Decides lengths, labels and stopping. "
    + "; ".join(f"{protocol.name}: {protocol.about}" for protocol in PROTOCOLS.values())
    + ".",
)
"""The --protocol of commands that make trials."""


def scale_options(default: str) -> Decorator:
    """Return the --scale and --protocol of commands that name sweeps, given what the default of the scale is.

    The command is called with one `scale`, such as laptop or laptop:chomsky. It is None without either option:
    `name_sweeps` then finds the default.
    """

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_protocol(*arguments: Any, scale: str | None, protocol: str | None, **options: Any) -> Any:
            name = scale_under(scale or LAPTOP.name, protocol) if scale or protocol else None
            return command(*arguments, scale=name, **options)

        about = f"{_SCALES}  [default: {default}]"
        return click.option("--scale", type=click.Choice(list(SCALES)), help=about)(protocol_option(with_protocol))

    return add


sweep_scale_options = scale_options("laptop; of a recorded sweep of your own, the scale it was run at last")

where_option = click.option(
    "--where",
    multiple=True,
    metavar="FIELD=VALUE,…",
    help="Only trials with these settings, such as model=bilinear,factored or modulus!=2. May be repeated; all"
    " conditions must hold.",
)


def _store_option(about: str, **more: Any) -> Decorator:
    return click.option(
        "--store",
        envvar="ORCH_STORE",
        default=DEFAULT_STORE,
        show_default=True,
        show_envvar=True,
        metavar="FOLDER|URI",
        help=f"Where results are stored: a folder, or a bucket such as s3://bucket/runs{about}.",
        **more,
    )


store_option = _store_option(f"; {BUNDLED}: the results that came with orch")
writable_store_option = _store_option("", callback=_writable)
"""The --store of commands that write: the bundled store is refused before anything starts."""

on_option = click.option(
    "--on",
    envvar="ORCH_CLUSTER",
    show_envvar=True,
    metavar="FILE",
    help="Use the cluster that `ray up` started from this launcher file, such as cluster/a100.yaml, and the store that"
    " the file names, unless --store is given.",
)

price_option = click.option(
    "--price",
    metavar="DOLLARS|FILE",
    help="What the machines cost, for the money left: dollars per hour for all of them, or their launcher file, such as"
    " cluster/a100.yaml.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
