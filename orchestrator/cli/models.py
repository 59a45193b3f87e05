"""`orch models`: the models and their parameter counts, and all about one of them."""

import csv
import dataclasses
import json
from importlib import resources
from typing import Any

import click

from orch.cli._options import json_option
from orch.cli._output import echo, echo_data
from orch.cli._settings import (
    MODEL_SETTINGS,
    SettingsCommand,
    complete_models_and_files,
    complete_tasks,
    given_settings,
    known_definitions,
)
from orch.cli._sweeps import one_name, own_first
from orch.cli._tables import print_rows
from orch.core.errors import InvalidSettings, look_up_name
from orch.core.settings import describe, from_dict, shown_value
from orch.models import REGISTRY, ModelConfig, Vocabulary
from orch.models.examples import examples_of
from orch.models.source import equation_of
from orch.sweeps.experiments.param_matched import MATCHED
from orch.sweeps.scales import SCALES
from orch.tasks import Task


class ModelCommand(SettingsCommand):
    """A command that has every setting of a model as an option."""

    sections = (MODEL_SETTINGS,)


@click.command(cls=ModelCommand)
@click.argument("names", nargs=-1, metavar="[FILE.py] [MODEL]", shell_complete=complete_models_and_files)
@click.option("--matched", is_flag=True, help="The models of the parameter-matched table, with the published counts.")
@click.option(
    "--task",
    default="modular_addition",
    show_default=True,
    shell_complete=complete_tasks,
    help="Task that sets the vocabulary.",
)
@click.option("--modulus", default=5, show_default=True, help="Modulus that sets the vocabulary.")
@json_option
def models(names: tuple[str, ...], matched: bool, task: str, modulus: int, as_json: bool, **options: Any) -> None:
    """List the models, or describe one.

    Of one model: its citation and equation, its settings with their defaults, its parameters at each scale, and
    commands that were measured. With a file of your own, its models come first, and --task may name one of its tasks.

    \b
    Example: orch models delta_product --householders 4
    """
    known, settings = known_definitions(), given_settings(options)
    chosen = known.made_tasks.get(task) or look_up_name("task", task, known.tasks).at_modulus(modulus)
    if problems := chosen.problems():
        raise InvalidSettings(problems)
    if name := one_name(names, "model"):
        if matched:
            raise InvalidSettings(["--matched lists models of a published table: leave out the model"])
        config_type = look_up_name("model", name, known.models)
        config = from_dict(config_type, settings, kind=f"setting of model {name}")
        _show(config, settings, chosen, as_json, file=" ".join(each for each in names if each != name))
        return
    if others := [each for each in settings if each != "width"]:
        flag = others[0].replace("_", "-")
        raise InvalidSettings([f"--{flag} is a setting of some models: name the model too, as in orch models lstm"])
    vocabulary = Vocabulary(chosen.vocabulary, chosen.num_readable)
    if matched:
        rows, title = _matched(vocabulary), f"Parameters for {chosen.full_title}"
    else:
        of_width = [each(**settings) for each in own_first(known.models, REGISTRY).values()]
        if problems := [problem for config in of_width for problem in config.problems()]:
            raise InvalidSettings(list(dict.fromkeys(problems)))
        rows = [_row(config, vocabulary) | {"about": config.about} for config in of_width]
        if len(widths := {config.width for config in of_width}) > 1:
            rows = [_with_width(row, config.width) for row, config in zip(rows, of_width, strict=True)]
        title = f"Parameters for {chosen.full_title}" + (f", width {widths.pop()}" if len(widths) == 1 else "")
    if as_json:
        echo_data(json.dumps(rows, indent=2))
    else:
        print_rows(rows, title=title)


def _with_width(row: dict[str, Any], width: int) -> dict[str, Any]:
    """Return a row with the width before the number of parameters."""
    return {"model": row["model"], "variant": row["variant"], "width": width} | row


def _row(config: ModelConfig, vocabulary: Vocabulary) -> dict[str, Any]:
    return {"model": config.name, "variant": config.full_summary, "parameters": config.num_parameters(vocabulary)}


def _matched(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    text = resources.files("orch.analysis").joinpath("published", "param_counts.csv").read_text()
    published = csv.DictReader(text.splitlines())
    return [
        _row(config, vocabulary) | {"width": config.width, "published": int(row["parameters"])}
        for (_, config), row in zip(MATCHED, published, strict=True)
    ]


def _show(config: ModelConfig, given: dict[str, Any], task: Task, as_json: bool, file: str) -> None:
    """Print all about one model, with the settings that were given."""
    vocabulary = Vocabulary(task.vocabulary, task.num_readable)
    sizes = {scale.name: scale.width for scale in SCALES.values()} if "width" not in given else {"given": config.width}
    configs = {name: dataclasses.replace(config, width=width) for name, width in sizes.items()}
    usable = {name: each for name, each in configs.items() if not each.problems()}
    if not usable:
        raise InvalidSettings(list(dict.fromkeys(problem for each in configs.values() for problem in each.problems())))
    facts: dict[str, Any] = {
        "model": config.name,
        "title": config.title_of(),
        "about": config.about,
        "equation": equation_of(type(config)),
        "settings": [
            {
                "setting": field.name,
                "default": shown_value(field.default),
                **({"here": shown_value(getattr(config, field.name))} if given else {}),
                "meaning": describe(field),
            }
            for field in dataclasses.fields(config)
        ],
        "parameters": [
            {"scale": name, "width": each.width, "parameters": each.num_parameters(vocabulary)}
            | {"learning rates": ", ".join(f"{rate:g}" for rate in _learning_rates(each, name))}
            for name, each in usable.items()
        ],
        "examples": [each.row for each in examples_of(config.name)],
    }
    if as_json:
        echo_data(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    echo(f"{facts['title']}: {facts['about']}", bold=True)
    echo(f"\n{facts['equation']}\n" if facts["equation"] else "")
    print_rows(facts["settings"], title="Settings")
    echo()
    print_rows(facts["parameters"], title=f"Parameters for {task.full_title}: {config.full_summary or 'defaults'}")
    echo()
    if facts["examples"]:
        echo("Measured, accuracy 0 is chance and 1 is perfect", bold=True)
        for example in examples_of(config.name):
            echo(f"$ {example.command}")
            scores = f"{example.trained:.2f} at 2–10 inputs, {example.at_20:.2f} at 20, {example.at_100:.2f} at 100"
            echo(f"  {scores}")
    else:
        named = f"{file} --model {config.name}".lstrip()
        echo(f"Train it: orch train {named} --task modular_addition --modulus 2 --steps 1000 --width 64")


def _learning_rates(config: ModelConfig, scale: str) -> tuple[float, ...]:
    """Return the learning rates that sweeps of a scale try; none for a width that is no scale's."""
    return config.own_learning_rates.get(scale, SCALES[scale].learning_rates) if scale in SCALES else ()
