"""Running `orch` commands in the process of the test."""

from typing import Any

from click.testing import CliRunner, Result

from orch.cli import main


def orch(*arguments: Any, expect: int = 0) -> Result:
    """Run `orch` with these arguments, and check its exit code."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == expect, result.output
    return result
