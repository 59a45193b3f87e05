"""Tables of automata that a sweep file names: they travel with its code, and their entries identify its trials."""

import json
from pathlib import Path

import pytest

from orch.core.errors import InvalidSettings
from orch.search.space import parse_space
from orch.search.spec import SearchSpec
from orch.sweeps.definitions import described_task
from orch.sweeps.expansion import expand
from orch.sweeps.grid import grid
from orch.sweeps.scales import LAPTOP, SMOKE
from orch.sweeps.selection import Results
from orch.sweeps.where import Known, parse_where
from orch.tasks.automaton import Automaton
from orch.usercode import UserCode, make_catalogue, name_sweeps
from orch.usercode.live_code import live_code
from tests.command_line import orch

STUDY = """
import orch
from torch import nn


class Sums(nn.Module):
    def __init__(self, vocabulary, width=4):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.embedding(tokens).cumsum(1))


cells = orch.grid(models=["rnn", Sums], tasks=[orch.automaton("tables/door.csv")], seeds=1, learning_rates=1e-3)
"""
DOOR = "state,push,pull\nopen,open,shut\nshut,open,shut\n"


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.py").write_text(f"{STUDY}# {tmp_path}: equal code is run once in a process\n")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "door.csv").write_text(DOOR)
    return tmp_path / "study.py"


def trials_of(catalogue):
    return [each.trial for each in expand(["study"], SMOKE, Results.none(), catalogue).trials.values()]


def ids_of(study):
    return {trial.id for trial in trials_of(name_sweeps([str(study)]).catalogue)}


def test_a_table_is_found_beside_the_sweep_file_wherever_the_command_runs(study, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    trials = trials_of(name_sweeps([str(study)]).catalogue)
    assert {trial.task.called for trial in trials} == {"door"}
    assert trials[0].task.symbol_names == ("push", "pull")


def test_code_in_a_store_has_its_tables_although_the_files_are_gone(study):
    code = UserCode.read(study)
    (study.parent / "tables" / "door.csv").unlink()
    study.unlink()
    again = UserCode.from_dict(code.to_dict())
    assert [name for name, _ in again.files] == ["study.py", "tables/door.csv"]
    assert again.digest == code.digest
    found = trials_of(make_catalogue((again,)))
    assert [trial.task.table for trial in found] == ['{"next":[[0,1],[0,1]]}'] * 2
    assert {trial.task.called for trial in found} == {"door"}


def test_an_edit_of_entries_makes_new_trials_and_one_of_names_does_not(study):
    table = study.parent / "tables" / "door.csv"
    first = ids_of(study)
    table.write_text(DOOR.replace("open", "ajar").replace("push", "shove"))
    assert ids_of(study) == first, "only names differ"
    table.write_text("state,push,pull\nopen,shut,shut\nshut,open,shut\n")
    assert ids_of(study).isdisjoint(first)


def test_a_bad_table_of_a_sweep_file_is_named_with_its_place(study):
    table = study.parent / "tables" / "door.csv"
    table.write_text(DOOR.replace("open,open", "open,oepn"))
    with pytest.raises(InvalidSettings) as error:
        name_sweeps([str(study)])
    assert (
        str(error.value)
        == "study.py, line 15: door.csv, row 2, column push: there is no state 'oepn': did you mean 'open'?"
    )
    table.unlink()
    with pytest.raises(InvalidSettings) as error:
        name_sweeps([str(study)])
    missing = f"there is no file {table}, looked for beside study.py: check the name and the folder"
    assert str(error.value) == f"study.py, line 15: {missing}"
    study.write_text(study.read_text().replace('"tables/door.csv"', '"tables/" + "door.csv"'))
    with pytest.raises(InvalidSettings, match=r"study\.py, line 15: tables/door\.csv does not travel with the sweep"):
        name_sweeps([str(study)])


def test_an_automaton_of_a_file_is_named_by_its_table_or_as_the_only_one(study):
    from orch.cli.train import resolve_trial

    def trained(task, **settings):
        return resolve_trial("rnn", task, None, None, settings, name_sweeps([str(study)]).catalogue).task

    door = trials_of(name_sweeps([str(study)]).catalogue)[0].task
    assert trained("door") == trained("automaton") == door
    assert trained("automaton", pattern="(ab)*") == Automaton(pattern="(ab)*") != door
    with pytest.raises(InvalidSettings, match=r"there is no task 'dor': did you mean 'door'\?"):
        trained("dor")
    with pytest.raises(InvalidSettings, match="task automaton has no table and no pattern: give --table"):
        resolve_trial("rnn", "automaton", None, None, {})
    study.write_text(f'{study.read_text()}\nothers = [orch.automaton(pattern="(ab)*")]\n')
    assert trained("(ab)*").called == "(ab)*"
    with pytest.raises(InvalidSettings, match=r"several tasks of the kind automaton: name one of door, \(ab\)\*"):
        trained("automaton")


def test_a_search_and_conditions_find_the_automaton_of_a_file(study):
    catalogue = name_sweeps([str(study)]).catalogue
    name, fixed = described_task("door", {"steps": 100}, catalogue)
    question = SearchSpec(name, "rnn", fixed, parse_space(["width=8,16"], name, "rnn", fixed, catalogue))
    again = SearchSpec.from_dict(json.loads(json.dumps(question.to_dict())))
    assert (again.id, again.example.task.called) == (question.id, "door"), "a recorded search needs no file"
    (trial, *_) = trials_of(catalogue)
    assert parse_where(["called=door"], Known.of(catalogue)).matches(trial)
    with pytest.raises(InvalidSettings, match="write called=door"):
        parse_where(["task=door"], Known.of(catalogue))


def test_tasks_lists_and_analyses_the_automaton_of_a_file(study):
    listed = json.loads(orch("tasks", str(study), "--json").stdout)
    assert listed[0]["task"] == "door"
    shown = json.loads(orch("tasks", str(study), "door", "--json").stdout)
    assert shown["algebra"]["num_states"] == 2


def test_an_automaton_of_a_notebook_becomes_code_that_needs_no_file(study, monkeypatch):
    monkeypatch.chdir(study.parent)
    task = Automaton(table="tables/door.csv")
    code = live_code("doors", "Doors", grid(models=["rnn"], tasks=[task], seeds=1, learning_rates=1e-3))
    (study.parent / "tables" / "door.csv").unlink()
    (trial,) = [
        each.trial for each in expand(["doors"], SMOKE, Results.none(), make_catalogue((code,))).trials.values()
    ]
    assert (trial.task, trial.task.called, trial.task.class_names) == (task, "door", ("open", "shut"))


def test_the_study_of_an_automaton_in_examples_has_five_models():
    example = Path(__file__).parents[2] / "examples" / "automaton_study.py"
    named = name_sweeps([str(example)])
    trials = [each.trial for each in expand(named.names, LAPTOP, Results.none(), named.catalogue).trials.values()]
    assert (len(trials), len({trial.model.name for trial in trials})) == (20, 5)
    assert {trial.task.summary for trial in trials} == {"vending #3f2a"}
    task = trials[0].task
    number = {task.spell(symbol): symbol for symbol in range(task.num_symbols)}
    words = {"nickel dime": "15", "dime dime": "0", "nickel dime dime": "5", "dime refund nickel": "5"}
    for word, cents in words.items():
        target = task.fold([number[each] for each in word.split()])
        assert task.unread[target - task.num_readable] == cents
