import datetime
import itertools

import pytest

from orch.store import Store
from orch.store.attempts import make_attempt_id
from tests.store.example import START, ids, write_example


def attempts_that_count(store):
    return {row["trial_id"]: row["attempt_id"] for row in store.read("trials").to_pylist()}


def curve_attempts(store):
    return [(row["attempt_id"], row["step"]) for row in store.read("curves").to_pylist()]


def test_the_earliest_of_several_results_counts_in_any_order_of_writing(tmp_path):
    store = Store.open(tmp_path)
    trial_id = write_example(store, attempt="later", minute=2, accuracy=0.1)
    assert attempts_that_count(store) == {trial_id: "later-0"}
    write_example(store, attempt="earlier", minute=1, accuracy=0.2)
    for reader in (store, Store.open(tmp_path)):
        assert attempts_that_count(reader) == {trial_id: "earlier-0"}
        assert reader.read("trials")["ood_accuracy"].to_pylist() == [0.2]


def test_among_results_of_the_same_time_the_smallest_attempt_id_counts(tmp_path):
    store = Store.open(tmp_path)
    trial_id = write_example(store, attempt="b")
    write_example(store, attempt="a")
    assert attempts_that_count(store) == {trial_id: "a-0"}


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("minutes", [(0, 1), (1, 0), (0, -1e9)])
def test_a_result_never_gives_way_to_that_of_a_later_driver_or_attempt_whatever_the_clocks_say(
    tmp_path, minutes, compacted
):
    store = Store.open(tmp_path)
    ids = [make_attempt_id(1, 7), make_attempt_id(1, 8), make_attempt_id(2, 1), make_attempt_id(16, 1)]
    for number, attempt in enumerate(ids):
        trial_id = write_example(store, attempt=attempt, minute=minutes[number % 2])
        if compacted:
            store.compact(min_parts=2)
        for reader in (store, Store.open(tmp_path)):
            assert attempts_that_count(reader) == {trial_id: f"{ids[0]}-0"}
            assert {attempt for attempt, _ in curve_attempts(reader)} == {f"{ids[0]}-0"}


def test_the_order_in_which_readers_meet_results_decides_nothing(tmp_path):
    ids = [make_attempt_id(1, 7), "0123456789abcdef", make_attempt_id(2, 1), "fedcba9876543210"]
    winners = set()
    for turn, order in enumerate(itertools.permutations(range(4))):
        store = Store.open(tmp_path / str(turn))
        for number in order:
            write_example(store, attempt=ids[number], minute=(5, 2, -9, 1)[number])
            store.read("trials")
        winners |= set(attempts_that_count(store).values()) | set(attempts_that_count(Store.open(store.uri)).values())
    assert winners == {"fedcba9876543210-0"}, "results of earlier versions come first, in the order that they had"


def test_after_a_withdrawal_the_next_attempt_counts(tmp_path):
    store = Store.open(tmp_path)
    trial_id = write_example(store, attempt=make_attempt_id(3, 1))
    store.discard([trial_id], "wrong")
    write_example(store, attempt=make_attempt_id(4, 1), minute=-5)
    assert attempts_that_count(store)[trial_id].startswith("n00000004")


def test_a_result_written_twice_counts_once(tmp_path):
    store = Store.open(tmp_path)
    for _ in range(3):
        write_example(store)
    assert store.read("trials").num_rows == 1
    assert curve_attempts(store) == [("first-0", 100), ("first-0", 200), ("first-0", 300)]


def test_a_finished_trial_shows_only_the_curve_that_led_to_its_result(tmp_path):
    store = Store.open(tmp_path)
    write_example(store, attempt="later", minute=2)
    write_example(store, attempt="earlier", minute=1)
    assert curve_attempts(store) == [("earlier-0", 100), ("earlier-0", 200), ("earlier-0", 300)]


def test_all_curves_of_an_unfinished_trial_are_shown(tmp_path):
    store = Store.open(tmp_path)
    store.write("curves", [{"trial_id": "unfinished", "attempt_id": "x", "step": step} for step in (1, 2, 2)])
    write_example(store)
    assert sorted(curve_attempts(store))[-2:] == [("x", 1), ("x", 2)]
    assert store.read("curves").num_rows == 5


def test_a_withdrawn_result_no_longer_counts_and_is_kept(tmp_path):
    store = Store.open(tmp_path)
    trial_id, other = write_example(store, seed=1), write_example(store, seed=2)
    assert store.discard([trial_id, "unknown"], "wrong labels") == 1
    for reader in (store, Store.open(tmp_path)):
        assert reader.done() == {other}
        assert set(reader.read("curves")["trial_id"].to_pylist()) == {other}
        [mark] = reader.read("withdrawn").to_pylist()
        assert (mark["trial_id"], mark["attempt_id"], mark["reason"]) == (trial_id, "first-1", "wrong labels")
        assert mark["at"] - datetime.datetime.now(datetime.UTC) < datetime.timedelta(minutes=1)
    assert len(list((tmp_path / "trials" / "0").iterdir())) == 2


def test_a_withdrawn_trial_counts_again_once_another_attempt_has_finished(tmp_path):
    store = Store.open(tmp_path)
    trial_id = write_example(store, attempt="wrong", minute=1)
    store.discard([trial_id], "wrong")
    write_example(store, attempt="wrong", minute=1)
    assert store.done() == set()
    write_example(store, attempt="right", minute=2)
    assert attempts_that_count(store) == {trial_id: "right-0"}
    assert {attempt for attempt, _ in curve_attempts(store)} == {"right-0"}


def test_withdrawing_a_trial_withdraws_all_its_results(tmp_path):
    store = Store.open(tmp_path)
    trial_id = write_example(store, attempt="a")
    write_example(store, attempt="b", minute=1)
    assert store.discard([trial_id], "wrong") == 1
    assert store.done() == set()
    assert store.discard([trial_id], "wrong") == 0
    assert store.read("withdrawn").num_rows == 2


def test_compaction_preserves_withdrawals(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(4):
        write_example(store, seed)
    store.discard(ids([1]), "wrong")
    store.discard(ids([2]), "wrong")
    store.compact(min_parts=2)
    write_example(store, seed=2, attempt="again")
    store.compact(min_parts=2)
    for reader in (store, Store.open(tmp_path)):
        assert reader.done() == ids([0, 2, 3])
        assert attempts_that_count(reader)[ids([2]).pop()] == "again-2"


def test_a_result_with_a_time_counts_before_one_without(tmp_path):
    store = Store.open(tmp_path)
    store.write("trials", [{"trial_id": "t", "attempt_id": "a"}])
    store.write("trials", [{"trial_id": "t", "attempt_id": "b", "finished_at": START}])
    assert attempts_that_count(store) == {"t": "b"}
