"""The `orch` command. Each subcommand is the module of `orch.cli` with its name, imported when it is needed."""

import contextlib
import difflib
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

import click

from orch.core.errors import OrchError, UnknownName
from orch.core.interruption import ending_cleanly, exit_code, received, sentence
from orch.core.printable import printable_lines


class LazyGroup(click.Group):
    """A command group that finds its subcommands by the names of their modules."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        command: click.Command = getattr(importlib.import_module(f"{__name__}.{name}"), name)
        return command

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(context):
            raise UnknownName("command", args[0], self.list_commands(context))
        return super().resolve_command(context, args)

    def main(self, *args: Any, **more: Any) -> Any:
        with ending_cleanly():
            return super().main(*args, **more)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _reported():
            return super().make_context(*args, **more)

    def invoke(self, context: click.Context) -> Any:
        with _reported():
            return super().invoke(context)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Print an `OrchError`, a signal, or what click says of a command line, without a traceback, and exit."""
    try:
        yield
    except (click.exceptions.NoArgsIsHelpError, click.exceptions.Exit):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if received() is not None or isinstance(error, KeyboardInterrupt):
            click.echo(sentence(exit_code() - 128), err=True)
            sys.exit(exit_code())
        if not isinstance(error, OrchError | click.UsageError):
            raise
        text = _usage_problem(error) if isinstance(error, click.UsageError) else str(error)
        for line in printable_lines(text):
            click.echo(f"error: {line}", err=True)
        sys.exit(2)


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
    """Train small sequence models, sweep over their settings, and compare the results with the paper.

    \b
    Example: orch train --model bilinear --task modular_addition --modulus 5
    """
