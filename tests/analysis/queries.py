"""The command `orch query`, as tests call it."""

from click.testing import CliRunner

from orch.cli import main


def orch(*arguments, expect=0, text=None):
    result = CliRunner().invoke(main, list(arguments), input=text)
    assert result.exit_code == expect, result.output
    return result


def ask(location, sql, *options, expect=0):
    result = orch("query", sql, "--store", location, *options, expect=expect)
    return result.stdout if expect == 0 else result.stderr
