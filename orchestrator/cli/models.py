"""`orch models`: the models and their parameter counts."""

import csv
import json
from importlib import resources
from typing import Any

import click

from orch.cli._options import json_option
from orch.cli._settings import complete_tasks
from orch.cli._sweeps import file_argument, own_first, read_definitions
from orch.cli._tables import print_rows
from orch.core.errors import InvalidSettings, look_up_name
from orch.models import REGISTRY, Vocabulary
from orch.sweeps.experiments.param_matched import MATCHED


@click.command()
@file_argument
@click.option("--matched", is_flag=True, help="The models of the parameter-matched table, with the published counts.")
@click.option(
    "--task",
    default="modular_addition",
    show_default=True,
    shell_complete=complete_tasks,
    help="Task that sets the vocabulary.",
)
@click.option("--modulus", default=5, show_default=True, help="Modulus that sets the vocabulary.")
@click.option("--width", default=256, show_default=True, help="Width at which parameters are counted.")
@json_option
def models(file: str | None, matched: bool, task: str, modulus: int, width: int, as_json: bool) -> None:
    """List the models with their parameter counts.

    With a file of your own, its models come first, and --task may name one of its tasks.

    \b
    Example: orch models --matched
    """
    known = read_definitions(file)
    chosen = look_up_name("task", task, known.tasks).at_modulus(modulus)
    vocabulary = Vocabulary(chosen.vocabulary, chosen.num_readable)
    problems = chosen.problems()
    rows: list[dict[str, Any]] = []
    if matched:
        for (_, config), published in zip(MATCHED, _published_counts(), strict=True):
            rows.append(
                {
                    "model": config.name,
                    "variant": config.full_summary,
                    "width": config.width,
                    "parameters": config.num_parameters(vocabulary),
                    "published": int(published["parameters"]),
                }
            )
    else:
        for name, config_type in own_first(known.models, REGISTRY).items():
            config = config_type(width=width)
            problems += config.problems()
            if not problems:
                parameters = config.num_parameters(vocabulary)
                rows.append({"model": name, "variant": config.summary, "parameters": parameters, "about": config.about})
    if problems:
        raise InvalidSettings(list(dict.fromkeys(problems)))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        title = f"Parameters at modulus {modulus} of {task}" + ("" if matched else f", width {width}")
        print_rows(rows, title=title)


def _published_counts() -> list[dict[str, str]]:
    text = resources.files("orch.analysis").joinpath("published", "param_counts.csv").read_text()
    return list(csv.DictReader(text.splitlines()))
