"""How trials are grouped for workers, and what becomes of a group that fails."""

from collections import deque

import pytest

from orchestrator.driver import Machines, RunOptions, _pieces, _Run
from orchestrator.failure import Failure
from orchestrator.packs import make_packs
from orchestrator.plan import make_plan
from orchestrator.store import Outcome
from orchestrator.work import Turn, Work
from tests.small import small_trial

FAILED = Failure(Outcome.FAILED, "ValueError in somewhere", "broken")
LOST = Failure(Outcome.LOST, "lost worker", "gone")
MACHINE_LOST = Failure(Outcome.LOST, "lost machine", "gone", blameless=True)


def nine(model: str = "rnn") -> list:
    return [
        small_trial(model, learning_rate=rate, init_seed=seed, data_seed=seed)
        for rate in (1e-3, 3e-4, 1e-4)
        for seed in range(3)
    ]


def packs_of(where: str, most: int | None = None) -> list[Work]:
    return make_packs(make_plan(["main"], "laptop", [where], None).trials, "cpu", most)


def test_every_trial_is_in_one_pack_and_the_trials_of_a_pack_are_alike():
    planned = make_plan(["main", "additive"], "laptop", [], None).trials
    packs = make_packs(planned, "cpu")
    ids = [trial.id for pack in packs for trial in pack.trials]
    assert sorted(ids) == sorted(each.id for each in planned)
    assert all(len({trial.stackable() for trial in pack.trials}) == 1 for pack in packs)
    assert max(len(pack.trials) for pack in packs) == 6


def test_one_trial_of_every_model_and_task_goes_first_and_alone():
    packs = packs_of("model=rnn,lstm")
    kinds = {(pack.label.split()[0], pack.trials[0].task.name) for pack in packs}
    assert all(len(pack.trials) == 1 for pack in packs[: len(kinds)])
    assert {(pack.trials[0].model.name, pack.trials[0].task.name) for pack in packs[: len(kinds)]} == kinds


def test_a_limit_is_kept_and_one_packs_nothing():
    assert max(len(pack.trials) for pack in packs_of("model=rnn", most=4)) == 3, "six trials make two threes"
    assert all(len(pack.trials) == 1 for pack in packs_of("model=rnn", most=1))


def test_models_that_gain_nothing_are_not_packed():
    assert all(len(pack.trials) == 1 for pack in packs_of("model=mamba,transformer"))


def test_a_pack_is_tried_again_as_a_pack_once_and_then_trial_by_trial():
    work = Work(nine(), [FAILED])
    assert _pieces(work) == [work]
    work.history.append(FAILED)
    assert [len(piece.trials) for piece in _pieces(work)] == [1] * 9
    alone = _pieces(work)[0]
    alone.history.append(FAILED)
    assert _pieces(alone) == [alone]
    alone.history.append(FAILED)
    assert _pieces(alone) == [], "the same failure twice, alone, is the trial's own"


def test_a_lost_machine_counts_against_nobody():
    work = Work(nine(), [MACHINE_LOST] * 20)
    assert _pieces(work) == [work]
    alone = Work(nine()[:1], [MACHINE_LOST] * 20)
    assert _pieces(alone) == [alone]


@pytest.mark.parametrize("outcome", [Outcome.OUT_OF_MEMORY, Outcome.HUNG])
def test_a_pack_that_asks_too_much_is_taken_apart_at_once(outcome):
    work = Work(nine(), [Failure(outcome, "too much", "too much")])
    assert len(_pieces(work)) == 9


def test_what_is_finished_is_not_tried_again():
    work = Work(nine(), [LOST, LOST])
    work.finished = {trial.id for trial in work.trials[:7]}
    assert sorted(piece.trials[0].id for piece in _pieces(work)) == sorted(trial.id for trial in work.trials[7:])


class Everything:
    def turn(self, work: Work) -> Turn:
        return Turn.NOW


def run(queue: list[Work], slots: int, tmp_path) -> list[int]:
    machines = Machines(cpus=slots, gpus=0, nodes=1, address=None)
    state = _Run(deque(queue), RunOptions("driver", str(tmp_path)), machines, Everything())  # type: ignore[arg-type]
    sizes = []
    while (work := state.next_work()) is not None:
        sizes.append(len(work.open_trials))
    return sizes


def test_towards_the_end_packs_are_shared_out_so_that_no_worker_is_idle(tmp_path):
    assert run([Work(nine())], 2, tmp_path) == [5, 2, 1, 1]
    assert run([Work(nine()[:2])], 2, tmp_path) == [1, 1]
    assert run([Work(nine())], 1, tmp_path) == [9]
    several = [Work(nine()) for _ in range(4)]
    assert run(several, 2, tmp_path)[:2] == [9, 9], "while there is enough for all, packs stay whole"
