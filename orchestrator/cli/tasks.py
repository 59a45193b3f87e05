"""`orch tasks`: the tasks that models can be trained on."""

import json
from typing import Any

import click

from orch.cli._options import json_option
from orch.cli._sweeps import file_argument, own_first, read_definitions
from orch.cli._tables import print_rows
from orch.core.errors import InvalidSettings
from orch.tasks import REGISTRY


@click.command()
@file_argument
@click.option("--modulus", default=5, show_default=True, help="Modulus to show the tasks at.")
@json_option
def tasks(file: str | None, modulus: int, as_json: bool) -> None:
    """List the tasks, each with an example.

    With a file of your own, its tasks come first.

    \b
    Example: orch tasks --modulus 3
    """
    rows: list[dict[str, Any]] = []
    for name, task_type in own_first(read_definitions(file).tasks, REGISTRY).items():
        task = task_type.at_modulus(modulus)
        if problems := task.problems():
            raise InvalidSettings(problems)
        target = task.fold(task.example)
        answer = task.unread[target - task.num_readable] if target >= task.num_readable else task.spell(target)
        rows.append(
            {
                "task": name,
                "example": f"[BOS] {' '.join(task.spell(symbol) for symbol in task.example)} [EOI] → {answer}",
                "vocabulary": task.vocabulary,
                "classes": task.num_classes,
                "chance": round(task.chance, 4),
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_rows(rows, title=f"Tasks at modulus {modulus}")
