"""Numbers on the command line: which of them an option accepts, whatever it is about."""

from collections.abc import Iterable
from typing import Any

import click

from orch.core.reading import LARGEST_INTEGER, shown

LARGEST_NUMBER = 1e100
"""Largest number of an option that is not a whole number; sums and products of such numbers are numbers too."""


def bound_numbers(parameters: Iterable[click.Parameter]) -> None:
    """Let options refuse numbers that are none (nan), infinite, or larger than the tables of a store can hold."""
    for each in parameters:
        if isinstance(each.type, (click.types.IntParamType, click.types.FloatParamType)) and each.callback is None:
            each.callback = _bounded


def _bounded(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    for number in value if isinstance(value, tuple) else (value,):
        check_bounded(number, context, parameter)
    return value


def check_bounded(number: Any, context: click.Context | None, parameter: click.Parameter | None) -> None:
    """Raise a usage error for a number that cannot be used."""
    most = LARGEST_NUMBER if isinstance(number, float) else LARGEST_INTEGER
    if number is not None and not -most <= number <= most:
        raise click.BadParameter(f"{shown(number)} is not a number that can be used", context, parameter)
