"""Command-line options made from settings: one for each field of a task, a model or a trial, with its description."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import click

from orch import models, tasks
from orch.core.settings import describe, field_types
from orch.sweeps.trial import Trial


class Lengths(click.ParamType[tuple[int, ...], Any]):
    """An option with a list of whole numbers."""

    name = "n,n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers: write it like 10,20,50", param, ctx)


class SettingOption(click.Option):
    """The option of one setting. `section` is the heading that it has in the help text."""

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
    """Yield one option for each name of a setting, which several models may share."""
    for section, registry in (("Task settings", tasks.REGISTRY), ("Model settings", models.REGISTRY)):
        owners: dict[str, list[tuple[str, type]]] = {}
        for name, config_type in registry.items():
            for field in dataclasses.fields(config_type):
                owners.setdefault(field.name, []).append((name, config_type))
        for field_name, found in owners.items():
            config_type = found[0][1]
            description = _describe(config_type, field_name)
            if len(found) < len(registry):
                description += f" ({', '.join(name for name, _ in found)})"
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
    """A command that has every setting as an option, with a help text in sections."""

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
    """Return the settings that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}
