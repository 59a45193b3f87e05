"""Command-line options made from settings: every field of every task, model and trial, in the words of its class."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import click

from orch import models, tasks
from orch.core.settings import describe, field_types
from orch.sweeps.trial import Trial


class Lengths(click.ParamType[tuple[int, ...], Any]):
    name = "n,n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers: write it like 10,20,50", param, ctx)


class SettingOption(click.Option):
    """An option that knows which part of a trial it belongs to."""

    def __init__(self, name: str, hint: Any, section: str, description: str):
        flag = "--" + name.replace("_", "-")
        self.section = section
        if hint is bool:
            super().__init__([f"{flag}/--no-{flag[2:]}"], default=None, help=description)
        else:
            super().__init__(
                [flag], type=Lengths() if hint not in (int, float, str) else hint, default=None, help=description
            )


def setting_options() -> Iterator[SettingOption]:
    """One option per setting name. A name that several models share is one option."""
    for section, registry in (("Task settings", tasks.REGISTRY), ("Model settings", models.REGISTRY)):
        owners: dict[str, list[tuple[str, type]]] = {}
        for name, config_type in registry.items():
            for field in dataclasses.fields(config_type):
                owners.setdefault(field.name, []).append((name, config_type))
        for field_name, having in owners.items():
            config_type = having[0][1]
            description = _describe(config_type, field_name)
            if len(having) < len(registry):
                description += f" ({', '.join(name for name, _ in having)})"
            yield SettingOption(field_name, field_types(config_type)[field_name], section, description)
    for field in dataclasses.fields(Trial):
        if field.name not in ("task", "model"):
            yield SettingOption(
                field.name, field_types(Trial)[field.name], "Training settings", _describe(Trial, field.name)
            )


def _describe(config_type: type, name: str) -> str:
    field = next(field for field in dataclasses.fields(config_type) if field.name == name)
    default = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    shown = {True: "yes", False: "no"}.get(default, default) if isinstance(default, bool) else default
    return f"{describe(field)} [{shown}]"


class SettingsCommand(click.Command):
    """A command with every setting as an option, its help in sections."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *setting_options()]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(context):
            record = param.get_help_record(context)
            if record is not None:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}


__all__ = ["SettingsCommand", "given_settings"]
