"""Command-line options made from settings: one for each field of a task, a model or a trial, with its description."""

import dataclasses
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from orch.cli._numbers import bound_numbers, check_bounded
from orch.cli._sweeps import SUFFIX, complete_files, read_definitions
from orch.core.errors import InvalidSettings, OrchError
from orch.core.settings import describe, field_types, shown_value
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.recipe import RECIPE
from orch.sweeps.trial import Trial

TASK_SETTINGS, MODEL_SETTINGS = "Task settings", "Model settings"
TRAINING_SETTINGS, RECIPE_SETTINGS = "Training settings", "Recipe settings"
"""Headings of options in a help text."""
_DEFINITIONS = "orch.definitions"
"""Where a click context has the models and tasks whose settings are options."""


class Values(click.ParamType[tuple[Any, ...], Any]):
    """An option with a list of values of one kind."""

    def __init__(self, kind: type[Any]):
        self._kind = kind
        self.name = "text,text,…" if kind is str else "n,n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        try:
            found = tuple(self._kind(part) for part in str(value).split(","))
            for each in found if self._kind is not str else ():
                check_bounded(each, ctx, param)
            return found
        except ValueError:
            numbers, example = ("whole numbers", "10,20,50") if self._kind is int else ("numbers", "0.1,0.5")
            self.fail(f"{value!r} is not a list of {numbers}: write it like {example}", param, ctx)


class SettingOption(click.Option):
    """The option of one setting. `section` is the heading that it has in the help text."""

    def __init__(self, name: str, hint: Any, section: str, description: str):
        flag = "--" + name.replace("_", "-")
        self.section = section
        if isinstance(hint, types.UnionType):  # a setting that may also be None, which is its default
            hint = next(arm for arm in hint.__args__ if arm is not type(None))
        if hint is bool:
            super().__init__([f"{flag}/--no-{flag[2:]}"], default=None, help=description)
        else:
            kind = Values(hint.__args__[0]) if typing.get_origin(hint) is tuple else hint
            super().__init__([flag], type=kind, default=None, help=description)
            bound_numbers([self])


def setting_options(definitions: Definitions = BUILT_IN_DEFINITIONS) -> Iterator[SettingOption]:
    """Yield one option for each name of a setting, which several models may share."""
    sections: tuple[tuple[str, Mapping[str, type[Any]]], ...] = (
        (TASK_SETTINGS, definitions.tasks),
        (MODEL_SETTINGS, definitions.models),
    )
    for section, registry in sections:
        owners: dict[str, list[tuple[str, type]]] = {}
        for name, config_type in registry.items():
            for field in dataclasses.fields(config_type):
                owners.setdefault(field.name, []).append((name, config_type))
        for field_name, found in owners.items():
            config_type = found[0][1]
            # Tasks describe the modulus in different ways; most of them agree.
            description = Counter(_describe(each, field_name) for _, each in found).most_common(1)[0][0]
            if len(found) < len(registry):
                description += f" ({', '.join(name for name, _ in found)})"
            yield SettingOption(field_name, field_types(config_type)[field_name], section, description)
    for field in dataclasses.fields(Trial):
        if field.name not in ("task", "model"):
            section = RECIPE_SETTINGS if field.name in RECIPE else TRAINING_SETTINGS
            yield SettingOption(field.name, field_types(Trial)[field.name], section, _describe(Trial, field.name))


def _describe(config_type: type, name: str) -> str:
    field = next(field for field in dataclasses.fields(config_type) if field.name == name)
    return f"{describe(field)} [{shown_value(field.default)}]"


class SettingsCommand(click.Command):
    """A command that has every setting as an option, with a help text in sections.

    If a file of the user is among its arguments, the settings of the file's models and tasks are options too. A
    subclass may have only those of some `sections`.
    """

    sections: tuple[str, ...] = (TASK_SETTINGS, MODEL_SETTINGS, TRAINING_SETTINGS, RECIPE_SETTINGS)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        path = self._file_among(args)
        try:
            context.meta[_DEFINITIONS] = BUILT_IN_DEFINITIONS if path is None else read_definitions(path)
        except OrchError:
            if not context.resilient_parsing:  # completion in a shell prints no errors
                raise
        taken = {option.name for option in self.params} & {option.name for option in self._settings(context)}
        if taken:
            names = ", ".join(sorted(map(str, taken)))
            raise InvalidSettings([f"{path} has settings called like options of orch {self.name}: rename {names}"])
        return super().parse_args(context, args)

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        return [*super().get_params(context), *self._settings(context)]

    def _settings(self, context: click.Context) -> list[SettingOption]:
        return [option for option in setting_options(_known(context)) if option.section in self.sections]

    def _file_among(self, args: Sequence[str]) -> str | None:
        """Return the first argument that names a Python file and is not the value of an option."""
        takes_value = {name for option in self.params for name in option.opts if not getattr(option, "is_flag", True)}
        for before, word in zip(["", *args], args, strict=False):
            if word.endswith(SUFFIX) and not word.startswith("-") and before not in takes_value:
                return word
        return None

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(context):
            if isinstance(param, click.Argument):
                continue
            record = param.get_help_record(context)
            if record is not None:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def known_definitions() -> Definitions:
    """Return the models and tasks that the running command knows: the built-in ones, and those of the user's file."""
    return _known(click.get_current_context())


def _known(context: click.Context) -> Definitions:
    found: Definitions = context.meta.get(_DEFINITIONS, BUILT_IN_DEFINITIONS)
    return found


def complete_models(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the models whose names begin with what was typed."""
    return _complete(_known(context).models, incomplete)


def complete_tasks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the tasks whose names begin with what was typed."""
    return _complete(_known(context).task_names, incomplete)


def complete_models_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the models, and the user's files, whose names begin with what was typed."""
    return _with_files(complete_models(context, parameter, incomplete), incomplete)


def complete_tasks_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the tasks, and the user's files, whose names begin with what was typed."""
    return _with_files(complete_tasks(context, parameter, incomplete), incomplete)


def _with_files(found: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    return found + complete_files(incomplete, others=bool(found))


def _complete(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


model_option = click.option("--model", shell_complete=complete_models, help="Model to train (see: orch models).")
task_option = click.option("--task", shell_complete=complete_tasks, help="Task to train it on (see: orch tasks).")
