"""Run a command on the cluster of a launcher file: the option --on."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

from orch.cli._output import echo, echo_data

if TYPE_CHECKING:
    from orch.usercode import UserCode

HERE = ("store", "on", "detach")
"""Options that are not passed on to the cluster as they are."""


def run_job(context: click.Context, names: Sequence[str] = (), codes: Sequence["UserCode"] = ()) -> NoReturn:
    """Submit the command as a job, which outlives this terminal, and exit with the job's exit code.

    `names` are the sweeps to run. `codes` are the sweep files among them, which are shipped with the job.
    """
    from orch.cluster.on_cluster import run_as_job
    from orch.cluster.shipment import place

    files = {code.name: str(place(code)) for code in codes}
    words = [str(context.info_name), *(files.get(name, name) for name in names), *given_options(context)]
    on, detach = context.params["on"], context.params["detach"]
    sys.exit(run_as_job(on, words, given_store(context), codes, detach, say=say, write=write))


def run_on_head(context: click.Context) -> NoReturn:
    """Run the command on the head over ssh, for commands that only read, and exit with its exit code."""
    from orch.cluster import on_cluster as remote

    words = [str(context.info_name), *given_options(context)]
    sys.exit(remote.run_on_head(context.params["on"], words, given_store(context)))


def say(text: str) -> None:
    """Print a message of ours, on standard error."""
    echo(text, err=True)


def write(text: str) -> None:
    """Print a piece of a job's log."""
    echo_data(text, nl=False)


def given_store(context: click.Context) -> str | None:
    """Return the --store of the command line. ORCH_STORE is not used: it names a store of this machine."""
    given = context.get_parameter_source("store") is ParameterSource.COMMANDLINE
    return context.params["store"] if given else None


def given_options(context: click.Context, without: Sequence[str] = HERE) -> list[str]:
    """Return the options that were set, as words of a command line, but for those named in `without`.

    Options with their default are left out.
    """
    words: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        chosen = context.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
        if not isinstance(option, click.Option) or name in without or not chosen:
            continue
        value = context.params[name]
        if option.is_flag:
            words += option.opts[:1] if value else option.secondary_opts[:1]
        else:
            for each in value if option.multiple else [value]:
                words += [option.opts[0], str(each)]
    return words
