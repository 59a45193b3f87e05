"""Workers and stores receive the text of user code, so that neither needs the file."""

import shutil

import pytest
import torch

from orch import models
from orch.running.failures import TrialError
from orch.running.requests import Request, find_trial, record, recorded_requests
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest
from orch.store import Store
from orch.training.checkpoints import load_model
from orch.usercode import UserCode, codes_defining, make_catalogue
from orch.usercode.stored_code import code_of_trial, put_code
from tests.unit_requests import unit_request


def unit_of(trial, store) -> UnitRequest:
    code = [code.to_dict() for code in codes_defining([trial])]
    return unit_request(store, [trial], checkpoint_seconds=60.0, weights_limit=1_000_000, code=code)


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def request_of(files, *where):
    return Request.read([files.path], "smoke", where)


def train_unfinished(request, store):
    """Train all unfinished trials in this process, and return their number."""
    plan = request.plan(store)
    record(store, request, plan)
    units = [unit_of(planned.trial, store) for planned in plan.trials if planned.left]
    for unit in units:
        assert UnitRun(unit).run_for(60)["done"]
    return len(units)


def test_a_worker_trains_what_it_was_sent_without_the_file(files, store):
    request = request_of(files, "task=last")
    shutil.rmtree(files.folder)
    assert train_unfinished(request, store) == 2
    rows = {row["model"]: row for row in store.read("trials").to_pylist()}
    assert (rows["averaging"]["flavour"], rows["averaging"]["decay"]) == ("plain", 0.5)
    assert (rows["rnn"]["flavour"], rows["rnn"]["patience"]) == (None, 0)
    assert rows["rnn"]["model_revision"] == models.REGISTRY["rnn"].revision
    assert rows["averaging"]["model_revision"] > 1000, "a hash of its source"
    assert rows["averaging"]["task_revision"] == rows["rnn"]["task_revision"] > 1
    assert rows["averaging"]["num_parameters"] == 2 * 5 * 8 + 5


def test_one_worker_process_trains_several_versions_of_the_code(files, store):
    old = request_of(files, "model=averaging", "task=last")
    new = Request.read([files.edit("mean(1)", "sum(1)", files.network)], old.scale, old.where)
    for request in (old, new, old, new):
        train_unfinished(request, store)
    losses = [row["validation_loss"] for row in store.read("trials").to_pylist()]
    assert len(set(losses)) == len(losses) == 2


def test_a_failure_in_user_code_is_recorded_with_its_source_line(files, store):
    files.edit("mean(1)", "median(1).no_such_thing", files.network)
    trial = request_of(files, "model=averaging").plan(store).trials[0].trial
    unit = unit_of(trial, store)
    shutil.rmtree(files.folder)
    with pytest.raises(TrialError):
        UnitRun(unit).run_for(60)
    row = next(row for row in store.read("attempts").to_pylist() if row["event"] == "end")
    assert row["outcome"] == "failed"
    assert row["error_signature"].startswith("AttributeError in averaging.py:")
    assert "x_VH[tokens_BT].median(1).no_such_thing" in row["traceback"], "the line is shown although no file has it"


def test_code_that_cannot_be_run_on_a_worker_is_a_recorded_failure(files, store):
    trial = request_of(files, "model=averaging").plan(store).trials[0].trial
    unit = unit_of(trial, store)
    unit["code"][0]["files"][0][1] += "\nimport only_on_my_machine\n"
    with pytest.raises(TrialError):
        UnitRun(unit)
    # Two parts of the same millisecond are in no order.
    rows = sorted((row["event"], row["trial_id"]) for row in store.read("attempts").to_pylist())
    assert rows == [("end", trial.id), ("start", trial.id)]


def test_a_network_whose_parameters_differ_from_shapes_is_a_clear_error(files, store):
    files.edit('"head.bias": (vocabulary.size,)', '"head.bias": (self.width,)')
    files.edit(
        "uniform(shape, 0.1, generator)", "uniform(shape if len(shape) > 1 else (5,), 0.1, generator)", files.network
    )
    trial = request_of(files, "model=averaging", "task=last").plan(store).trials[0].trial
    with pytest.raises(TrialError) as caught:
        UnitRun(unit_of(trial, store))
    expected = "the network of averaging has other parameters than its shapes() says: head.bias is (5,), not (8,)"
    assert caught.value.failure.message == expected


def test_a_recorded_request_has_the_code_as_it_was_when_recorded(files, store):
    request = request_of(files, "model=averaging")
    plan = request.plan(store)
    record(store, request, plan)
    files.edit("mean(1)", "sum(1)", files.network)
    assert recorded_requests(store) == [request]
    wanted = plan.trials[0].trial
    found = find_trial(store, wanted.id[:9])
    assert found.id == wanted.id
    assert found.model.name == "averaging"


def test_a_request_repeated_after_an_edit_is_recorded_with_the_new_code(files, store):
    old = request_of(files)
    record(store, old, old.plan(store))
    new = Request.read([files.edit("mean(1)", "sum(1)", files.network)], old.scale, old.where)
    record(store, new, new.plan(store))
    assert recorded_requests(store) == [new]
    assert len(store.list_json("code")) == 2, "the code of finished trials stays"


def test_editing_the_file_does_not_change_a_running_sweep(files, store):
    request = request_of(files)
    before = [planned.id for planned in request.plan(store).trials]
    files.edit("mean(1)", "sum(1)", files.network)
    assert [planned.id for planned in request.plan(store).trials] == before


def test_code_missing_from_the_store_is_an_error_with_a_remedy(files, store):
    request = request_of(files)
    record(store, request, request.plan(store))
    store.delete(f"code/{request.code[0].digest}.json")
    with pytest.raises(
        Exception, match=r"the code of my-sweep is no longer in the store at .*: run orch sweep with its"
    ):
        recorded_requests(store)


def test_a_trained_model_can_be_loaded_with_the_code_it_was_trained_with(files, store, tmp_path):
    old = request_of(files, "model=averaging", "task=last")
    train_unfinished(old, store)
    (row,) = store.read("trials").to_pylist()
    newer = UserCode.read(files.edit("mean(1)", "sum(1)", files.network))
    put_code(store, [newer])
    asked_more = UserCode.read(files.edit("width=8", "width=16"))
    put_code(store, [asked_more])
    found = code_of_trial(store, row["trial_id"])
    assert found == old.code
    (tmp_path / "model").write_bytes(store.get_weights(row["trial_id"]))
    network, trial = load_model(tmp_path / "model", make_catalogue(found))
    assert trial.id == row["trial_id"]
    tokens = torch.tensor([[[trial.task.bos, 1, 2, trial.task.eoi]]])
    embedding = network["embedding"][0, tokens[0, 0]]
    torch.testing.assert_close(network(tokens, torch.tensor([[3]]))[0], network.head(embedding.mean(0)[None, None])[0])
    assert code_of_trial(store, "no such trial") == ()


def test_a_trial_of_built_in_model_and_task_has_no_code(files, store):
    train_unfinished(request_of(files, "model=rnn", "task=modular_addition"), store)
    (trial_id,) = store.done()
    assert code_of_trial(store, trial_id) == ()
