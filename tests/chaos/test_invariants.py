"""The check after a round of chaos notices whatever it promises to notice."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orch.running.lease import Lease
from orch.store import Store, curve_rows, trial_row
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.training.checkpoints import model_bytes
from tests.chaos import invariants, processes
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.faults.power_cut import cut_power
from tests.chaos.harness import Round
from tests.chaos.places import Place
from tests.chaos.planned import planned
from tests.chaos.rounds import RAY_OF_TEN, Series, choose
from tests.new_process import run_python

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.thorough


def write_results(location, attempt, loss=0.5, trials=None):
    store = Store.open(location)
    for each in planned() if trials is None else trials:
        trial = each.trial
        result = Result(
            trial=trial,
            stop_reason=StopReason.BUDGET,
            steps=trial.steps,
            seconds=1.0,
            curve=(CurvePoint(10, 1.0, loss, 0.5, 0.1),),
            test_accuracy=dict.fromkeys(trial.tested_lengths, 0.25),
            majority=dict.fromkeys(trial.tested_lengths, 0.5),
            parameters={},
        )
        store.put_weights(each.id, model_bytes(result))
        store.write_trials([trial_row(result, {"attempt_id": attempt})], curve_rows(result, attempt))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    write_results(folder, "attempt")
    return folder


@pytest.fixture
def round(tmp_path, monkeypatch, expected):
    """Return a round that has ended well, with made-up results."""
    monkeypatch.setattr(invariants, "ORPHAN_SECONDS", 0.5)
    folder = tmp_path / "round"
    folder.mkdir()
    place = Place(folder)
    shutil.copytree(expected, place.location)
    found = Round(1, "none", place, str(expected))
    yield found
    found.end()


def parts(round, table):
    return sorted(Path(round.place.root, table).rglob("*.parquet"))


def lose_a_row(round):
    parts(round, "trials")[0].unlink()
    return "has no row"


def lose_curves(round):
    parts(round, "curves")[0].unlink()
    return "curves of trial .* differ from an undisturbed run: 0 rows instead of 1"


def change_a_number(round):
    parts(round, "trials")[0].unlink()
    missing = [each for each in planned() if each.id not in Store.open(round.place.root).done()]
    write_results(round.place.root, "attempt", loss=0.5 + 1e-16 * 2, trials=missing)
    return "trials of trial .* differ from an undisturbed run: .*validation_loss"


def add_a_trial(round):
    result = {"attempt_id": "other", "trial_id": "stray"}
    Store.open(round.place.root).write("trials", [result])
    return "trial stray was never planned"


def lose_weights(round):
    next(Path(round.place.root, "weights").iterdir()).unlink()
    return "has no weights"


def take_back_a_result(round):
    (round.folder / "a.out").write_text("finished some-trial some-attempt\n")
    return "some-attempt at trial some-trial was acknowledged and is gone"


def hide_damage(round):
    Path(round.place.root, "notes").mkdir()
    round.place.write("notes/a.json", b"damaged")
    round.damaged["notes/a.json"] = b"damaged"
    return "notes/a.json was damaged, and nothing says so"


def leave_a_process(round):
    subprocess.Popen(["sleep", "60"], env=os.environ | {processes.MARK: round.mark})
    return "was left behind: sleep 60"


def leave_a_lease(round):
    lease = Lease(Store.open(round.place.root), "a test")
    lease._write()
    return "a lease is left"


def leave_a_folder(round):
    (round.folder / "tmp" / "orch-tune-x").mkdir(parents=True)
    return "left in the folder for temporary files: orch-tune-x"


def show_a_traceback(round):
    (round.folder / "a.out").write_text("Traceback (most recent call last):\nKeyError: 1\n")
    return "a.out shows a traceback: KeyError: 1"


BROKEN = [
    *(lose_a_row, lose_curves, change_a_number, add_a_trial, lose_weights, take_back_a_result, hide_damage),
    *(leave_a_lease, leave_a_folder, show_a_traceback),
]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("breaks", [*BROKEN, leave_a_process], ids=lambda function: function.__name__)
def test_the_check_notices_what_must_not_be(round, breaks):
    expected = breaks(round)
    problems = invariants.check(round)
    assert any(re.search(expected, problem) for problem in problems), problems


def test_a_round_that_ended_well_passes(round):
    assert invariants.check(round) == []


def test_damage_that_was_done_excuses_the_rows_that_were_in_the_file_and_no_others(round):
    lost = parts(round, "curves")[0]
    round.damaged[f"curves/0/{lost.name}"] = None
    round.may_lack["curves"].add("attempt")
    lost.unlink()
    assert invariants.check(round) == []


DURABLE = """
from pathlib import Path
from tests.chaos.conditions import journal
from orch.core.atomic_write import write_atomically
root = Path({root!r})
journal(str(root), {kept!r})
for number in range(8):
    write_atomically(root / "folder" / str(number), b"data" * 100, durable={durable})
"""


def survivors(folder, durable):
    """Return the files that are whole after one process wrote eight and the power was cut, in five futures."""
    from random import Random

    whole = []
    for seed in range(5):
        root, kept = folder / f"{durable}-{seed}" / "root", folder / f"{durable}-{seed}" / "kept"
        (root / "folder").mkdir(parents=True)
        program = DURABLE.format(root=str(root), kept=str(kept), durable=durable)
        run_python(f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n{program}")
        cut_power(kept / "journal", Random(seed))
        whole += [path for path in (root / "folder").glob("[!.]*") if path.read_bytes() == b"data" * 100]
    return len(whole)


def test_a_power_cut_takes_what_was_not_synced_and_nothing_else(tmp_path):
    assert survivors(tmp_path, durable=True) == 40
    assert survivors(tmp_path, durable=False) < 40


def test_a_seed_always_stands_for_the_same_round_and_all_rounds_have_their_turn():
    choices = [choose(seed) for seed in range(200)]
    assert choices == [choose(seed) for seed in range(200)]
    for ten in range(20):
        assert sum(choice.fault.ray for choice in choices[10 * ten : 10 * ten + 10]) == RAY_OF_TEN
    allowed = {(fault.name, place) for fault in FAULTS.values() for place in fault.on if not fault.missing}
    assert {(choice.fault.name, choice.place) for choice in choices} == {pair for pair in allowed if pair[1] != "hosts"}
    replayed = choices[7]
    assert f"--seed 7 --rounds 1 --fault {replayed.fault.name} --on {replayed.place}" in replayed.replay
    assert choose(7, replayed.fault.name, replayed.place) == replayed


def test_a_machine_that_is_short_of_processes_for_a_moment_does_not_change_what_seeds_stand_for():
    answers = iter([None, "needs root"])
    fault = Fault(name="any", about="", run=lambda round: None, needs=lambda: next(answers))
    assert [fault.missing, fault.missing] == [None, None]


def test_a_place_that_cannot_be_made_fails_its_round_and_not_the_series(monkeypatch):
    def fail(self, *arguments):
        raise AssertionError("ray start ended with 1")

    monkeypatch.setattr(Series, "_place", fail)
    outcome = Series().run(choose(7, place="disk"))
    outcome.folder.rmdir()
    assert "its place could not be made" in outcome.problems[0]
    assert "ray start ended with 1" in outcome.problems[0]


def test_the_page_about_chaos_has_every_fault_as_it_describes_itself():
    page = (ROOT / "docs" / "chaos.md").read_text()
    for fault in FAULTS.values():
        kind = "real" if fault.ray else "plain"
        assert f"| `{fault.name}` | {kind} | {', '.join(fault.on)} | {fault.about} |" in page
    assert len(re.findall(r"^\| `", page, re.MULTILINE)) == len(FAULTS)
