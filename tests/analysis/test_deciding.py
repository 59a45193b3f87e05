"""The order by information: what is cheapest to settle comes first, and what is settled is left out."""

import time
from collections import deque
from collections.abc import Iterable

import pytest
from click.testing import CliRunner

from orch.analysis.board import Board
from orch.analysis.claims import CLAIMS, Verdict, judge_board
from orch.analysis.deciding import Decider, cell_values, claim_values
from orch.cli import main
from orch.core.errors import OrchError
from orch.planning.packs import packs_by_value
from orch.planning.plan import PlannedTrial, make_plan
from orch.running.options import RunOptions
from orch.running.requests import Request
from orch.running.trial_order import TrialOrder
from orch.store import Store
from orch.sweeps.scales import LAPTOP
from tests.analysis.finished import finish
from tests.analysis.invented import invented_row

BY_ID = {claim.id: claim for claim in CLAIMS}
PARITY, NO_MORE = BY_ID["diagonal-learns-parity"], BY_ID["diagonal-fails-addition"]


def planned(where: str = "model=block_diagonal,block_size=1,task=modular_addition", store: Store | None = None):
    return [each for each in make_plan(["main"], "laptop", [where], store).trials if each.left]


def row(each: PlannedTrial, ood: float) -> dict[str, object]:
    return invented_row(each.id, each.trial.learning_rate, each.trial.init_seed, ood_accuracy=ood, accuracy_100=ood)


def after(*results: tuple[PlannedTrial, float]) -> Board:
    return Board(LAPTOP, {each.id: row(each, ood) for each, ood in results})


def rates(values: Iterable[str], left: Iterable[PlannedTrial]) -> list[tuple[int, float, int]]:
    by_id = {each.id: each.trial for each in left}
    found = [(by_id[key].task.modulus, by_id[key].learning_rate, by_id[key].init_seed) for key in values]
    return sorted(found)


def test_a_cell_needs_one_seed_of_each_rate_until_one_learns():
    left = planned("model=lstm,task=modular_addition,modulus=2")
    first = cell_values(after(), ["main"], left)
    assert rates(first, left) == [(2, 3e-4, 0), (2, 1e-3, 0)]
    [tried] = [each for each in left if (each.trial.learning_rate, each.trial.init_seed) == (1e-3, 0)]
    others = [each for each in left if each is not tried]
    assert cell_values(after((tried, 1.0)), ["main"], others) == {}, "success is final"
    assert rates(cell_values(after((tried, 0.1)), ["main"], others), others) == [(2, 3e-4, 0)]


def test_with_a_confidence_a_cell_needs_seeds_of_the_chosen_rate_until_it_is_sure():
    left = planned("model=lstm,task=modular_addition,modulus=2")
    finished = [(each, 1.0 if each.trial.learning_rate == 1e-3 else 0.2) for each in left if each.trial.init_seed == 0]
    others = [each for each in left if each.trial.init_seed == 1]
    assert rates(cell_values(after(*finished), ["main"], others, 0.95), others) == [(2, 1e-3, 1)]
    assert cell_values(after(*finished), ["main"], others, 0.5) == {}, "one seed is enough to be half sure"


def test_the_trial_of_a_cheaper_cell_has_more_value_for_its_time():
    left = planned("model=lstm,rnn,task=modular_addition,modulus=2")
    values = cell_values(after(), ["main"], left)
    kinds = {each.id: each.trial.model.name for each in left}
    seconds = {name: max(each.seconds for each in left if kinds[each.id] == name) for name in ("lstm", "rnn")}
    cheaper = min(seconds, key=seconds.__getitem__)
    packs = packs_by_value(left, values, "cpu", most=1)
    assert kinds[packs[0][0].id] == cheaper
    assert sorted(trial.id for pack in packs for trial in pack) == sorted(values), "the others are left out"


def test_only_trials_that_can_change_a_verdict_have_a_value():
    left = planned()
    claims = [PARITY, NO_MORE]
    assert rates(claim_values(after(), left, None, claims), left) == [
        (modulus, rate, 0) for modulus in (2, 3, 5) for rate in (3e-4, 1e-3)
    ]
    done = [(each, 1.0 if each.trial.task.modulus == 2 else 0.0) for each in left if each.trial.init_seed == 0]
    others = [each for each in left if each.trial.init_seed]
    board = after(*done)
    assert {each.verdict for each in judge_board(board, claims).judgements} == {Verdict.SUPPORTED}
    assert claim_values(board, others, None, claims) == {}
    assert rates(claim_values(board, others, 0.95, claims), others) == [
        (modulus, rate, 1) for modulus, rate in ((2, 3e-4), (3, 3e-4), (5, 3e-4))
    ], "one seed is not sure"


def test_a_contradicted_claim_needs_nothing_more():
    left = planned("model=block_diagonal,block_size=1,task=modular_addition,modulus!=2")
    [lucky] = [
        each
        for each in left
        if (each.trial.task.modulus, each.trial.learning_rate, each.trial.init_seed) == (3, 1e-3, 0)
    ]
    others = [each for each in left if each is not lucky]
    assert claim_values(after((lucky, 1.0)), others, None, [NO_MORE]) == {}
    assert claim_values(after((lucky, 0.0)), others, None, [NO_MORE]) != {}


def test_a_claim_that_waits_for_results_needs_the_trials_that_decide_them():
    left = planned("model=bilinear,lstm,modulus=5")
    values = claim_values(after(), left, None, [BY_ID["bilinear-as-data-efficient-as-lstm"]])
    assert values.keys() == {each.id for each in left}, "the rate is chosen from all of them"


def test_a_run_asks_again_when_results_arrive_and_keeps_retries(tmp_path, monkeypatch):
    store = Store.open(tmp_path / "runs")
    request = Request(("main",), "laptop", ("model=lstm", "task=modular_addition", "modulus=2"))
    decider = Decider("cells", [request], store)
    todo = {each.id: each for each in request.plan(store).trials}
    events: list[str] = []
    log = type("Log", (), {"event": lambda self, name, **facts: events.append(name)})()
    order = TrialOrder(decider, "cpu", RunOptions(pack=1), log)
    queue = deque(order.units(todo))
    assert [len(unit.trials) for unit in queue] == [1, 1]
    running = queue.popleft()
    order.take(running.open_ids)
    order.arrange(queue, todo)
    assert events == ["trials valued"], "nothing has happened"
    finish(store, running.trials[0], ood=1.0)
    order.result_arrived()
    order.arrange(queue, todo)
    assert len(queue) == 1, "not so soon after the last time"
    later = time.monotonic() + 3600
    monkeypatch.setattr("orch.running.trial_order.time.monotonic", lambda: later)
    queue.append(running)
    order.arrange(queue, todo)
    assert list(queue) == [running], "the cell is settled, and a retry stays"
    assert order.attempted(todo) == set(running.open_ids)


def test_an_order_survives_a_store_that_cannot_be_read_for_a_moment(tmp_path):
    class Broken:
        kind = "cells"
        fails = False

        def values(self, left):
            if self.fails:
                raise OrchError("the store is gone")
            return {each.id: 1.0 for each in left}

    decider, events = Broken(), []
    log = type("Log", (), {"event": lambda self, name, **facts: events.append(name)})()
    order = TrialOrder(decider, "cpu", RunOptions(pack=1), log)
    todo = {each.id: each for each in planned("model=lstm,task=modular_addition,modulus=2")}
    queue = deque(order.units(todo))
    decider.fails = True
    before = list(queue)
    order._ask_at = 0.0
    order.result_arrived()
    order.arrange(queue, todo)
    assert list(queue) == before
    assert events[-1] == "trials not valued"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--confidence", "0.95"], "add --decide claims"),
        (["--decide", "cells", "--confidence", "2"], "is not between 0.5 and 1"),
        (["--decide", "cells", "--cheapest-first"], "leave one out"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(options, problem, tmp_path):
    result = CliRunner().invoke(main, ["sweep", "main", "--store", str(tmp_path / "runs"), *options])
    assert result.exit_code == 2
    assert problem in result.stderr


def atlas_trials(*where: str) -> list[PlannedTrial]:
    return make_plan(["atlas"], "laptop", where, None).trials


def test_trials_of_the_atlas_are_valued_by_the_claims_of_the_field(tmp_path):
    store = Store.open(tmp_path / "runs")
    decider = Decider("claims", [Request(("atlas",), "laptop")], store)
    left = atlas_trials("model=rg_lru")
    values = decider.values(left)
    tasks = {each.trial.task.name for each in left if each.id in values}
    assert "parity_check" in tasks
    assert "dihedral" not in tasks, "no claim asks for it"
    parity = [each for each in left if each.trial.task.name == "parity_check"]
    assert len(parity) == 3
    assert {each.id for each in parity} <= values.keys(), "with one learning rate, every seed must fail"


def test_seeds_are_valued_at_the_scale_that_they_belong_to_and_other_trials_are_refused(tmp_path):
    store = Store.open(tmp_path / "runs")
    paper = "from orch.sweeps.scales import PAPER\n\n\ndef cells(scale, results):\n    yield "
    cell = "PAPER.cell(PAPER.task('modular_addition', {}), PAPER.model('block_diagonal', block_size=1), variant='1')\n"
    for modulus, asked in ((2, True), (7, False)):
        path = tmp_path / f"seeds_{modulus}.py"
        path.write_text(paper + cell.format(modulus))
        request = Request.read([str(path)], "laptop", ())
        if asked:
            left = request.plan(store).trials
            assert Decider("claims", [request], store).values(left)
        else:
            with pytest.raises(OrchError, match="no claim asks for any trial of"):
                Decider("claims", [request], store)
    with pytest.raises(OrchError, match="no claim asks"):
        Decider("claims", [Request(("atlas",), "laptop", ("task=dihedral",))], store)
