"""What becomes of units whose worker was lost."""

from pathlib import Path

import pytest

from orch.core.errors import OrchError
from orch.running.failures import Failure
from orch.running.lost_units import LostUnits
from orch.running.units import Unit
from orch.store import Outcome, Store
from tests.store.example import example_result, write_example

LOST = Failure(Outcome.LOST, "lost worker", "the worker process is gone")


def lost_unit(*seeds: int) -> Unit:
    trials = [example_result(seed).trial for seed in seeds]
    return Unit(trials, attempts={trial.id: f"first-{seed}" for trial, seed in zip(trials, seeds, strict=True)})


def ends(store: Store) -> dict[str, str]:
    return {row["attempt_id"]: row["outcome"] for row in store.read("attempts").to_pylist()}


def test_results_that_were_not_reported_are_found_and_the_other_attempts_end(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    one, other = lost_unit(0, 1, 2), lost_unit(3)
    reported, unreported = write_example(store, 0), write_example(store, 1)
    write_example(store, 3, attempt="another driver's")
    one.finished.add(reported)
    lost = LostUnits(store, "driver", "cpu")
    assert not lost
    lost.add(one, LOST)
    lost.add(other, LOST)
    assert lost
    found = {id(each.unit): each for each in lost.collect(wait=True)}
    assert not lost
    assert [row["trial_id"] for row in found[id(one)].finished] == [unreported]
    assert found[id(other)].finished == []
    assert ends(store) == {"first-2": "lost", "first-3": "lost"}


def test_each_lost_unit_is_handed_back_once_and_more_may_follow(tmp_path: Path) -> None:
    lost = LostUnits(Store.open(tmp_path), "driver", "cpu")
    for seed in range(3):
        lost.add(lost_unit(seed), LOST)
        assert len(lost.collect(wait=True)) == 1
        assert lost.collect() == []


def test_a_store_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path)

    def refuse(*_: object) -> None:
        raise OrchError("full")

    monkeypatch.setattr(store, "write", refuse)
    lost = LostUnits(store, "driver", "cpu")
    lost.add(lost_unit(0), LOST)
    (each,) = lost.collect(wait=True)
    assert str(each.error) == "full"


def test_an_error_of_our_own_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path)
    monkeypatch.setattr(store, "read", None)
    lost = LostUnits(store, "driver", "cpu")
    lost.add(lost_unit(0), LOST)
    with pytest.raises(TypeError):
        lost.collect(wait=True)
