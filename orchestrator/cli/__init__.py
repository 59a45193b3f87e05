"""The `orch` command. Each subcommand is the module of `orch.cli` with its name, imported when it is needed."""

import contextlib
import difflib
import errno
import importlib
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import click

from orch.cli._numbers import bound_numbers
from orch.core.errors import OrchError, UnknownName
from orch.core.interruption import ending_cleanly, exit_code, received, sentence
from orch.core.printable import printable_lines

_FULL = "free space where its output and its temporary files go"
_BUSY = "end other programs, or raise their limits"
_REFUSALS = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO), _FULL)
_REFUSALS |= dict.fromkeys((errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE), _BUSY)
"""What the system may refuse to any command, with the remedy."""


_SECTIONS = {
    "Train and sweep": ("train", "plan", "sweep", "resume", "search"),
    "Watch a sweep": ("status", "watch", "serve", "failures", "logs"),
    "Read results": ("results", "query", "report", "claims", "reproduction", "checklist", "export"),
    "See what exists": ("models", "tasks", "sweeps"),
    "Run elsewhere": ("cluster", "slurm", "doctor"),
    "Look after a store": ("keep", "discard", "merge", "compact", "verify", "bundle"),
}
"""The commands as `orch --help` lists them."""


class LazyGroup(click.Group):
    """A command group that finds its subcommands by the names of their modules."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        command: click.Command = getattr(importlib.import_module(f"{__name__}.{name}"), name)
        for each in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
            bound_numbers(each.params)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.list_commands(context)))
        limit = formatter.width - 6 - widest
        for heading, names in _SECTIONS.items():
            found = {name: self.get_command(context, name) for name in names}
            rows = [(name.ljust(widest), each.get_short_help_str(limit)) for name, each in found.items() if each]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(context):
            raise UnknownName("command", args[0], self.list_commands(context))
        return super().resolve_command(context, args)

    def main(self, *args: Any, **more: Any) -> Any:
        with ending_cleanly():
            return super().main(*args, **more)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _reported():
            try:
                os.getcwd()
            except FileNotFoundError:
                raise OrchError("the current folder was deleted: change to another one, such as cd ~") from None
            return super().make_context(*args, **more)

    def invoke(self, context: click.Context) -> Any:
        with _reported():
            found = super().invoke(context)
            sys.stdout.flush()  # a full disk is told here, and not when Python takes itself apart
            return found


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Print an `OrchError`, a signal, or what click says of a command line, without a traceback, and exit."""
    try:
        yield
    except (click.exceptions.NoArgsIsHelpError, click.exceptions.Exit):
        raise
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if received() is not None or isinstance(error, KeyboardInterrupt):
            click.echo(sentence(exit_code() - 128), err=True)
            sys.exit(exit_code())
        if not isinstance(error, OrchError | click.ClickException | OSError):
            raise
        if isinstance(error, OSError) and not error.filename and error.errno not in _REFUSALS:
            raise  # nothing that the user has named, or can change
        text = _usage_problem(error) if isinstance(error, click.UsageError) else _message(error)
        for line in printable_lines(text):
            click.echo(f"error: {line}", err=True)
        sys.exit(2)


def _message(error: OrchError | click.ClickException | OSError) -> str:
    if isinstance(error, OSError) and error.errno in _REFUSALS:
        what = f"{error.filename} cannot be written" if error.filename else "this machine does not go on"
        return f"{what} ({os.strerror(error.errno)}): {_REFUSALS[error.errno]}, then run the command again"
    if isinstance(error, OSError):
        return f"{error.filename} cannot be used ({error.strerror}): check its name, its folder and your rights"
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as a message like those of errors; one that is not ours says where it comes from."""
    ours = category.__module__.partition(".")[0] == __name__.partition(".")[0]
    place = "" if ours else f" ({category.__name__}, {filename}, line {lineno})"
    return "".join(f"warning: {text}\n" for text in printable_lines(f"{message}{place}"))


def _show_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of an error that nobody expected, which may quote a text from anywhere."""
    for line in printable_lines("".join(traceback.format_exception(kind, error, trace))):
        print(line, file=sys.stderr)


def _usage_problem(error: click.UsageError) -> str:
    """Return what is wrong with a command line, as one sentence that ends with the remedy."""
    context = error.ctx
    # The first name of a path is that of the program, whichever way it was started.
    command = " ".join(["orch", *([] if context is None else context.command_path.split()[1:])])
    if isinstance(error, click.NoSuchOption) and context is not None:
        flags = [flag for each in context.command.get_params(context) for flag in each.opts if flag.startswith("-")]
        if difflib.get_close_matches(error.option_name, flags, n=1):
            return str(UnknownName("option", error.option_name, flags))
        return f"there is no option {error.option_name!r}: {command} --help lists them"
    problem = error.format_message().rstrip(".")
    return f"{problem[:1].lower()}{problem[1:]}; {command} --help explains it"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="orch")
def main() -> None:
    """Train small sequence models, sweep over their settings, and query, tabulate and draw the results.

    \b
    Example: orch train --model bilinear --task modular_addition --modulus 5
    Example: orch sweep my_study.py
    """
    warnings.formatwarning = _format_warning
    sys.excepthook = _show_defect
