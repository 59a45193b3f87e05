"""`orch tasks`: the tasks that models can be trained on, and the algebra of one of them."""

import dataclasses
import json
from typing import Any

import click

from orch.cli._options import json_option
from orch.cli._output import echo, echo_data
from orch.cli._settings import (
    TASK_SETTINGS,
    SettingsCommand,
    complete_tasks_and_files,
    given_settings,
    known_definitions,
)
from orch.cli._sweeps import one_name, own_first
from orch.cli._tables import print_rows
from orch.core.errors import InvalidSettings, UnknownName
from orch.core.settings import from_dict
from orch.sweeps.definitions import Definitions, described_task
from orch.tasks import REGISTRY, Task
from orch.tasks.algebra import REFERENCES, Algebra, Family, analyse, predict

_LISTED_MODULUS = 5
_MOST_ANALYSED = 200
"""Largest modulus whose algebra is computed: that of modular_arithmetic takes the square of its values."""


class TaskCommand(SettingsCommand):
    """A command that has every setting of a task as an option."""

    sections = (TASK_SETTINGS,)


@click.command(cls=TaskCommand)
@click.argument("names", nargs=-1, metavar="[FILE.py] [TASK]", shell_complete=complete_tasks_and_files)
@json_option
def tasks(names: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """List the tasks, or show the algebra of one.

    The algebra is that of the smallest automaton with the same targets: the size of its transition monoid, whether that
    is a group, commutative, solvable or aperiodic, and what theory then says of each family of models. With a file of
    your own, its tasks come first.

    \b
    Example: orch tasks group --group S5
    """
    settings = given_settings(options)
    if named := one_name(names, "task"):
        _show(_checked(_named(named, settings, known_definitions())), as_json)
        return
    if others := [name for name in settings if name != "modulus"]:
        flag = others[0].replace("_", "-")
        raise InvalidSettings([f"--{flag} is a setting of some tasks: name the task too, as in orch tasks group"])
    modulus = settings.get("modulus", _LISTED_MODULUS)
    known = known_definitions()
    rows = [_row(_checked(task)) | {"task": name} for name, task in known.made_tasks.items()]
    for task_type in own_first(known.tasks, REGISTRY).values():
        rows.append(_row(_checked(task_type.at_modulus(modulus))))
    if as_json:
        echo_data(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_rows(rows, title=f"Tasks at modulus {modulus}")


def _named(name: str, settings: dict[str, Any], known: Definitions) -> Task:
    name, settings = described_task(name, settings, known)
    if name not in known.tasks:
        raise UnknownName("task", name, known.task_names)
    return from_dict(known.tasks[name], settings, kind=f"setting of task {name}")


def _checked(task: Task) -> Task:
    if problems := task.problems():
        raise InvalidSettings(problems)
    return task


def _row(task: Task) -> dict[str, Any]:
    target = task.fold(task.example)
    answer = task.unread[target - task.num_readable] if target >= task.num_readable else task.spell(target)
    return {
        "task": task.name,
        "example": f"[BOS] {' '.join(task.spell(symbol) for symbol in task.example)} [EOI] → {answer}",
        "vocabulary": task.vocabulary,
        "classes": task.num_classes,
        "chance": round(task.chance, 4),
    }


def _show(task: Task, as_json: bool) -> None:
    if task.has_modulus and task.modulus > _MOST_ANALYSED:
        raise InvalidSettings([f"the algebra at modulus {task.modulus} takes too long: use at most {_MOST_ANALYSED:,}"])
    algebra = analyse(task)
    predictions = {family: predict(algebra, family) for family in Family}
    if as_json:
        found = {family: dataclasses.asdict(each) for family, each in predictions.items()}
        shown = _row(task) | {"algebra": dataclasses.asdict(algebra), "predictions": found}
        echo_data(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    print_rows([_row(task)], title=task.full_title)
    echo()
    print_rows([{"algebra": name, "value": value} for name, value in _facts(algebra).items()], title="Its algebra")
    echo()
    rows = [
        {
            "family": family.about,
            "verdict": each.verdict,
            "layers": "" if each.layers is None else str(each.layers),
            "reason": each.reason,
            "source": each.citation,
        }
        for family, each in predictions.items()
    ]
    print_rows(rows, title="What theory says, of one set of weights for every length")
    echo()
    for citation in dict.fromkeys(source for each in predictions.values() for source in each.citation.split("; ")):
        echo(f"{citation}: {REFERENCES[citation]}")


def _facts(algebra: Algebra) -> dict[str, str]:
    """Return the facts that were computed, in words."""

    def known(value: bool | int | None) -> str:
        if value is None:
            return f"not known: the monoid has more than {algebra.limit:,} elements"
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value:,}"

    size = f"more than {algebra.limit:,}" if algebra.num_elements is None else f"{algebra.num_elements:,}"
    facts = {
        "states of the smallest automaton": known(algebra.num_states),
        "inputs that act differently": known(algebra.num_inputs),
        "elements of the transition monoid": size,
        "group": known(algebra.is_group),
        "commutative": known(algebra.is_commutative),
        "solvable": known(algebra.is_solvable),
        "aperiodic (star-free)": known(algebra.is_aperiodic),
    }
    if algebra.is_group:
        facts["nilpotent"] = known(algebra.is_nilpotent)
        if algebra.is_solvable:
            facts["length of the derived series"] = known(algebra.derived_length)
    else:
        facts["elements of the largest group in it"] = known(algebra.largest_subgroup)
    return facts
