"""How commands run on the cluster that --on names, as they were given here."""

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from orch.usercode import UserCode

HERE = ("store", "on", "detach")
"""Options that are settled before a command leaves."""


def run_job(context: click.Context, names: Sequence[str] = (), codes: Sequence["UserCode"] = ()) -> NoReturn:
    """As a job that outlives this terminal; the exit code is the job's.

    `names` are the sweeps to run; the files of those in `codes` travel along.
    """
    from orch.cluster.on_cluster import run_as_job
    from orch.cluster.shipment import place

    files = {code.name: str(place(code)) for code in codes}
    words = [str(context.info_name), *(files.get(name, name) for name in names), *given_options(context)]
    on, detach = context.params["on"], context.params["detach"]
    sys.exit(run_as_job(on, words, given_store(context), codes, detach, say=say, write=write))


def run_on_head(context: click.Context) -> NoReturn:
    """At once, over ssh, for commands that only look."""
    from orch.cluster import on_cluster as remote

    words = [str(context.info_name), *given_options(context)]
    sys.exit(remote.run_on_head(context.params["on"], words, given_store(context)))


def say(text: str) -> None:
    click.echo(text, err=True)


def write(text: str) -> None:
    click.echo(text, nl=False)


def given_store(context: click.Context) -> str | None:
    """What --store says. A store in the environment is this machine's, not a cluster's."""
    given = context.get_parameter_source("store") is ParameterSource.COMMANDLINE
    return context.params["store"] if given else None


def given_options(context: click.Context, without: Collection[str] = HERE) -> list[str]:
    """The options that were given, as words that give them again; what has its default is left out."""
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
