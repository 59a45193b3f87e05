"""The board joins the cells of sweeps to finished rows, for everything that reports results."""

from pathlib import Path

import pytest

from orch.analysis.aggregate import CellStatus
from orch.analysis.board import Board
from orch.store import Store
from orch.sweeps.scales import LAPTOP, SMOKE
from tests.analysis.finished import finish
from tests.analysis.invented import invented_row
from tests.store.example import saved

BILINEAR_ON_PARITY = 0


def test_a_cell_knows_its_finished_failed_and_missing_trials() -> None:
    ids = Board(LAPTOP).cells("main")[BILINEAR_ON_PARITY].cell.trial_ids
    finished = {trial_id: invented_row(trial_id) for trial_id in (ids[2], ids[0])}
    cell = Board(LAPTOP, finished, failed={ids[0], ids[1]}).cells("main")[BILINEAR_ON_PARITY]
    assert [row["trial_id"] for row in cell.finished] == [ids[0], ids[2]], "in the order of the cell"
    assert cell.failed == (ids[1],), "a finished trial has not failed, whatever went wrong before"
    assert cell.missing == tuple(ids[3:])
    assert cell.num_waiting == 0
    assert (cell.summary.num_planned, cell.summary.num_done, cell.summary.num_failed) == (len(ids), 2, 1)
    assert cell.summary.status is CellStatus.PARTIAL


def test_trials_wait_until_the_results_that_they_need_are_finished() -> None:
    waiting = Board(SMOKE).cells("data-efficiency")
    assert all(cell.num_waiting == len(cell.cell.trials) and not cell.missing for cell in waiting)
    main = [trial_id for cell in Board(SMOKE).cells("main") for trial_id in cell.cell.trial_ids]
    decided = Board(SMOKE, {trial_id: invented_row(trial_id) for trial_id in main}).cells("data-efficiency")
    assert all(cell.num_waiting == 0 and len(cell.missing) == len(cell.cell.trials) for cell in decided)


def test_the_chosen_rows_are_those_of_the_best_learning_rate() -> None:
    trials = Board(LAPTOP).cells("main")[BILINEAR_ON_PARITY].cell.trials
    finished = {}
    for trial in trials:
        at_100, far = (0.9, 0.1 + 0.1 * trial.init_seed) if trial.learning_rate == 3e-4 else (0.2, 1.0)
        row = invented_row(trial.id, trial.learning_rate, trial.init_seed, accuracy_100=at_100, ood_accuracy=far)
        finished[trial.id] = row
    cell = Board(LAPTOP, finished).cells("main")[BILINEAR_ON_PARITY]
    assert {row["learning_rate"] for row in cell.chosen} == {3e-4}
    assert [row["init_seed"] for row in cell.chosen] == [0, 1]
    assert [row["init_seed"] for row in cell.chosen_best_first] == [1, 0]
    assert Board(LAPTOP).cells("main")[BILINEAR_ON_PARITY].chosen == []


def test_a_board_of_another_scale_has_the_same_trials_and_other_cells(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    assert Board.read(store, SMOKE).finished == {}, "a store need not exist"
    [first, *_] = Board(SMOKE).cells("main")
    finish(store, first.cell.example)
    laptop = Board.read(store, LAPTOP)
    smoke = laptop.at(SMOKE)
    assert not any(cell.finished for cell in laptop.cells("main"))
    assert [row["trial_id"] for cell in smoke.cells("main") for row in cell.finished] == first.cell.trial_ids


def test_the_best_trial_with_weights_is_found_among_the_chosen(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    trials = Board(LAPTOP).cells("main")[BILINEAR_ON_PARITY].cell.trials
    for trial in trials:
        finish(store, trial, ood=1.0 - 0.1 * trial.init_seed, at_100=0.9 if trial.learning_rate == 1e-3 else 0.5)
    board = Board.read(store, LAPTOP)
    cell = board.cells("main")[BILINEAR_ON_PARITY]
    assert board.best_with_weights(cell) is None
    kept = {trial.init_seed: trial.id for trial in trials if trial.learning_rate == 1e-3}
    for seed in (1, 0):
        store.put_weights(kept[seed], saved(b"weights"))
        row, weights = board.best_with_weights(cell) or pytest.fail("its weights were kept")
        assert (row["trial_id"], weights) == (kept[seed], saved(b"weights"))
