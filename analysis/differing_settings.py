"""The settings in which cells differ: the words that distinguish cells of one model in tables and figures."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from orch.core.settings import named_value

Group = TypeVar("Group", bound=Hashable)
Settings = Mapping[str, Any]


def differing_settings(cells: Iterable[tuple[Group, Settings]]) -> dict[Group, list[str]]:
    """Return the names of the settings that differ between the cells of each group."""
    groups: dict[Group, list[Settings]] = {}
    for group, settings in cells:
        groups.setdefault(group, []).append(settings)
    return {group: _differing(members) for group, members in groups.items()}


def distinguish(cells: Sequence[tuple[Hashable, Settings]]) -> list[str]:
    """Describe each cell by the settings that differ between the cells of its group."""
    names = differing_settings(cells)
    return [describe_settings(settings, names[group]) for group, settings in cells]


def describe_settings(settings: Settings, names: Iterable[str]) -> str:
    """Return these settings with their values.

    >>> describe_settings({"batch_size": 64, "steps": 500}, ["batch_size"])
    'batch size 64'
    """
    return ", ".join(named_value(name, settings.get(name)) for name in names)


def _differing(cells: Sequence[Settings]) -> list[str]:
    names = dict.fromkeys(name for settings in cells for name in settings)
    return [name for name in names if len({str(settings.get(name)) for settings in cells}) > 1]
