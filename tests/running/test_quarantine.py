"""Which places are kept free of trials, and what counts against a trial."""

from collections import deque

import pytest

from orch.running.failures import SAME_IN_A_ROW, Failure, worth_another_try
from orch.running.machines import Machines
from orch.running.options import RunOptions
from orch.running.quarantine import SICK_AFTER, Place, Quarantine, published, quarantines
from orch.running.run_state import RunState
from orch.store import Outcome, Store

FIRST, SECOND = (Place("node-a", "host-a", device) for device in "01")
OTHER = Place("node-b", "host-b", "0")


def failure(place, signature="ECC error", **more):
    return Failure(Outcome.FAILED, signature, "", place=place, **more)


def after(*places, signature="ECC error", others=(OTHER,)):
    """Return a quarantine after failures at these places, while others train."""
    quarantine = Quarantine()
    for place in others:
        quarantine.trained(place, finished=False)
    for place in places:
        quarantine.failed(failure(place, signature))
    return quarantine


def test_a_gpu_on_which_attempts_fail_alike_while_others_train_is_sick():
    assert not after(*[FIRST] * (SICK_AFTER - 1)).sick
    assert after(*[FIRST] * SICK_AFTER, others=(SECOND,)).sick == {FIRST: "ECC error"}


def test_a_machine_is_sick_if_several_of_its_gpus_fail_alike():
    assert after(FIRST, SECOND, FIRST).sick == {FIRST.machine: "ECC error"}


def test_a_machine_is_not_sick_while_one_of_its_gpus_trains():
    quarantine = after(*[FIRST.machine] * (SICK_AFTER - 1))
    quarantine.trained(SECOND, finished=False)
    quarantine.failed(failure(FIRST.machine))
    assert not quarantine.sick


@pytest.mark.parametrize(
    "quarantine",
    [
        pytest.param(after(*[FIRST] * SICK_AFTER, others=()), id="nothing trains elsewhere"),
        pytest.param(after(FIRST, OTHER, FIRST, OTHER, FIRST, OTHER, others=()), id="it fails everywhere"),
    ],
)
def test_no_place_is_sick_if(quarantine):
    assert not quarantine.sick


def test_different_errors_a_finished_trial_and_errors_of_user_code_clear_a_place():
    quarantine = after(FIRST, FIRST)
    quarantine.failed(failure(FIRST, "another error"))
    quarantine.failed(failure(FIRST))
    assert not quarantine.sick
    quarantine = after(FIRST, FIRST)
    quarantine.trained(FIRST, finished=True)
    quarantine.failed(failure(FIRST))
    assert not quarantine.sick
    for _ in range(SICK_AFTER):
        quarantine.failed(failure(FIRST, deterministic=True))
        quarantine.failed(failure(FIRST, blameless=True))
    assert not quarantine.sick


def test_a_place_is_free_again_when_its_trials_fail_alike_elsewhere():
    quarantine = after(*[FIRST] * SICK_AFTER)
    assert quarantine.excuse([failure(FIRST), failure(OTHER)]) == [FIRST]
    assert not quarantine.sick


def test_workers_read_from_the_drivers_file_where_not_to_train():
    driver = {"counts": {"quarantined": published({FIRST: "ECC error"})}}
    assert quarantines(driver, FIRST)
    assert not quarantines(driver, SECOND)
    assert not quarantines({}, FIRST)
    assert quarantines({"counts": {"quarantined": published({FIRST.machine: "ECC error"})}}, SECOND)


def test_an_error_that_comes_back_in_one_place_only_does_not_count_against_the_trial():
    assert not worth_another_try([failure(FIRST), failure(FIRST)], num_places=1)
    assert worth_another_try([failure(FIRST), failure(FIRST)], num_places=2)
    assert not worth_another_try([failure(FIRST), failure(OTHER)], num_places=2)
    assert worth_another_try([failure(FIRST), failure(OTHER)], num_places=8), "two places may be sick"
    assert not worth_another_try([failure(FIRST), failure(SECOND), failure(OTHER)], num_places=8)


@pytest.mark.parametrize("places", [[FIRST], [FIRST, OTHER], [FIRST, None], [None]])
def test_a_sweep_is_broken_if_it_fails_alike_everywhere_or_in_the_only_place(tmp_path, places):
    assert broken(tmp_path, places, seen=()) is not None


def test_a_sweep_is_not_broken_if_it_fails_alike_in_one_of_several_places(tmp_path):
    assert broken(tmp_path, [FIRST], seen=[OTHER]) is None


def broken(folder, places, seen):
    run = RunState(deque(), Machines(2, 2, 2, None), RunOptions(), None, Store.open(folder), "driver")
    run._quarantine.seen |= {*seen}
    for number in range(SAME_IN_A_ROW):
        each = failure(places[number % len(places)])
        run._quarantine.failed(each)
        run._check_for_broken_sweep(each)
    return run.error
