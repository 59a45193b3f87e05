"""The `orch` command. Each subcommand is the module of `orch.cli` with its name, imported when it is needed."""

import importlib
import pkgutil
import sys
from typing import Any

import click

from orch.core.errors import OrchError, UnknownName
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
            context.fail(str(UnknownName("command", args[0], self.list_commands(context))))
        return super().resolve_command(context, args)

    def invoke(self, context: click.Context) -> Any:
        """Run a command and print its `OrchError` as a message, without a traceback."""
        try:
            return super().invoke(context)
        except OrchError as error:
            for line in printable_lines(str(error)):
                click.echo(f"error: {line}", err=True)
            sys.exit(2)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="orch")
def main() -> None:
    """Train small sequence models, sweep over their settings, and compare the results with the paper.

    \b
    Example: orch train --model bilinear --task modular_addition --modulus 5
    """
