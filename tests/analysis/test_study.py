import subprocess
import sys

import pyarrow as pa
import pytest
import torch

from orch import analysis
from orch.core.errors import OrchError, UnknownName
from orch.store import Store, StoreWarning, curve_rows, trial_row
from orch.training.checkpoints import model_bytes
from orch.training.train import train
from tests.analysis.finished import finish, trials
from tests.small import small_trial


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "runs")
    for place, trial in enumerate(trials()):
        finish(store, trial, ood=0.25 * place)
    return store


def test_the_tables_are_arrow_tables_and_become_frames(store):
    study = analysis.load(store.location)
    assert isinstance(study.trials, pa.Table)
    frame = study.trials.to_pandas()
    assert sorted(frame["ood_accuracy"]) == [0.0, 0.25, 0.5, 0.75]
    assert study.curves.num_rows == 8
    assert study.attempts.num_rows == 0
    assert study.cells["ood_best"].to_pylist() == [0.75]
    assert study.published.num_rows == 1242


def test_cells_are_never_out_of_date(store):
    study = analysis.load(store.location)
    assert study.cells is study.cells
    assert study.cells["num_done"].to_pylist() == [4]
    finish(store, trials(width=16)[0])
    assert sorted(study.cells["num_done"].to_pylist()) == [1, 4]


def test_loading_reads_nothing_and_creates_nothing(tmp_path):
    study = analysis.load(tmp_path / "none")
    for table in ("trials", "curves", "attempts", "cells"):
        with pytest.raises(OrchError, match=r"there are no results at .*none: check the name, or run orch sweep"):
            getattr(study, table)
    assert study.plan("smoke").num_rows > 100
    assert list(tmp_path.iterdir()) == []


def test_the_plan_has_every_trial_of_a_scale_and_how_far_it_is(store):
    plan = analysis.load(store.location).plan("smoke").to_pylist()
    waiting = [row for row in plan if row["state"] == "waiting"]
    assert {row["state"] for row in plan} == {"to do", "waiting"}
    assert all(row["trial_id"] is None and row["learning_rate"] is None for row in waiting)
    assert all(row["trial_id"] and row["seconds"] > 0 for row in plan if row["state"] == "to do")
    assert any(len(row["sweeps"]) > 1 for row in plan)
    assert {"model", "task", "modulus", "label", "init_seed", "basis"} <= plan[0].keys()


def test_the_comparison_puts_ours_beside_the_published(tmp_path):
    from orch.sweeps.registry import SWEEPS
    from orch.sweeps.scales import SMOKE
    from orch.sweeps.selection import Results

    store = Store.open(tmp_path)
    cell = next(iter(SWEEPS["main"].cells(SMOKE, Results.none())))
    finish(store, cell.trials[0], ood=0.25, diverged=True)
    study = analysis.load(tmp_path)
    done = [each for each in study.comparison("smoke") if each.ours is not None]
    assert {each.published.split: each.ours for each in done} == {"validation": 1.0, "ood": 0.25}
    rows = study.query("SELECT ours, published, status, remark, best_trial FROM comparison WHERE ours IS NOT NULL",
                       scale="smoke").to_pylist()  # fmt: skip
    assert {row["ours"] for row in rows} == {1.0, 0.25}
    assert {row["remark"] for row in rows} == {"1 diverged"}
    assert {row["best_trial"] for row in rows} == {cell.trials[0].id}
    with pytest.raises(UnknownName, match="did you mean 'smoke'"):
        study.comparison("smoek")


def test_sql_from_python_with_tables_of_ones_own(store):
    import pandas as pd

    study = analysis.load(store.location)
    frame = pd.DataFrame({"model": ["rnn"], "colour": ["red"]})
    sql = "SELECT colour, count(*) AS n FROM trials JOIN mine USING (model) JOIN other USING (model) GROUP BY 1"
    answer = study.query(sql, mine=frame, other=pa.table({"model": ["rnn"]}))
    assert answer.to_pylist() == [{"colour": "red", "n": 4}]
    with pytest.raises(OrchError, match="the name plan is taken by a view"):
        study.query("SELECT 1", plan=frame)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    store = Store.open(tmp_path_factory.mktemp("trained") / "runs")
    result = train(small_trial("rotation"))
    store.write_trial(trial_row(result, {"attempt_id": "a"}), curve_rows(result, "a"))
    store.put_weights(result.trial.id, model_bytes(result))
    return store, result


def test_the_trained_network_of_a_trial_is_the_one_that_was_trained(trained):
    store, result = trained
    study = analysis.load(store.location)
    for name in (result.trial.id, result.trial.id[:5]):
        network = study.model(name)
        assert not network.training
        for parameter, values in network.member(0).items():
            assert torch.equal(values, result.parameters[parameter])
    tokens = torch.tensor([[[result.trial.task.bos, 1, 2, result.trial.task.eoi]]])
    assert network(tokens, torch.tensor([[3]])).shape == (1, 1, result.trial.task.vocabulary)


def test_a_model_that_cannot_be_loaded_says_why(store, trained):
    study = analysis.load(store.location)
    [*ids] = study.trials["trial_id"].to_pylist()
    with pytest.raises(OrchError, match="no finished trial has it"):
        study.model("zzz")
    with pytest.raises(OrchError, match="4 finished trials begin with it"):
        study.model("")
    with pytest.raises(OrchError, match=f"the weights of trial {ids[0]} were not kept.*--weights-mb"):
        study.model(ids[0])
    store.put_weights(ids[0], b"not safetensors")
    with pytest.warns(StoreWarning, match="is damaged"), pytest.raises(OrchError, match="were not kept"):
        study.model(ids[0])


def test_looking_at_results_imports_neither_torch_nor_ray(store):
    code = (
        "import sys, analysis\n"
        "assert not {'pyarrow', 'numpy'} & set(sys.modules)\n"
        f"study = analysis.load({store.location!r})\n"
        "study.trials, study.cells, study.published, study.plan('smoke'), study.comparison('smoke')\n"
        "study.query('SELECT model, max(ood_best) FROM cells GROUP BY 1')\n"
        "print(sorted({'torch', 'ray', 'transformers', 'matplotlib'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
