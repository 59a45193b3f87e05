import dataclasses
import json
import math

import pyarrow as pa
import pytest

from orch import models, tasks
from orch.core.errors import UnknownName
from orch.store import SCHEMAS, curve_rows, trial_row
from orch.store.columns import PROVENANCE
from orch.store.schema_union import conform, union
from orch.sweeps.trial import TRAINER_REVISION, Trial
from tests.new_process import modules_imported
from tests.store.example import example_result


@pytest.mark.parametrize("table", SCHEMAS)
def test_every_column_has_a_description(table):
    for field in SCHEMAS[table]:
        assert len(field.metadata[b"description"]) > 5, field.name


def test_every_setting_of_every_task_model_and_trial_is_a_column():
    for config_type in (*tasks.REGISTRY.values(), *models.REGISTRY.values(), Trial):
        for field in dataclasses.fields(config_type):
            assert field.name in SCHEMAS["trials"].names


@pytest.mark.parametrize("model", sorted(models.REGISTRY))
def test_a_row_fits_the_schema_and_has_the_settings_of_its_model(model):
    result = example_result(model=model)
    row = trial_row(result, {"attempt_id": "a"})
    assert set(row) <= set(SCHEMAS["trials"].names)
    read = pa.Table.from_pylist([row], schema=SCHEMAS["trials"]).to_pylist()[0]
    for name in (field.name for field in dataclasses.fields(result.trial.model)):
        assert read[name] == getattr(result.trial.model, name)
    others = {field.name for config in models.REGISTRY.values() for field in dataclasses.fields(config)}
    for name in others - {field.name for field in dataclasses.fields(result.trial.model)}:
        assert read[name] is None


def test_a_row_has_both_the_planned_steps_and_the_steps_trained():
    result = example_result(steps=5000)
    row = trial_row(result, {"attempt_id": "a"})
    assert (row["steps"], row["steps_trained"]) == (5000, 300)


def test_a_row_has_the_exact_trial_and_its_revisions():
    result = example_result(curve_lengths=(10, 100))
    row = trial_row(result, {"attempt_id": "a", "packages": {"torch": "2"}, "host": None})
    assert Trial.from_dict(json.loads(row["config"])) == result.trial
    assert (row["task"], row["model"]) == ("modular_addition", "bilinear")
    assert (row["task_revision"], row["model_revision"]) == (result.trial.task.revision, result.trial.model.revision)
    assert row["trainer_revision"] == TRAINER_REVISION
    assert row["packages"] == '{"torch": "2"}'
    assert row["num_parameters"] == result.trial.model.num_parameters(result.trial.vocabulary)
    assert row["finished_at"].tzinfo is not None


def test_a_row_has_normalised_and_raw_accuracies():
    row = trial_row(example_result(accuracy=0.5, modulus=5, test_length=500), {"attempt_id": "a"})
    assert (row["ood_accuracy"], row["accuracy_100"]) == (0.5, 0.5)
    assert math.isclose(row["ood_accuracy_raw"], 0.6)
    assert math.isclose(row["validation_accuracy_raw"], 0.6)
    assert [point["length"] for point in row["length_curve"]] == [10, 20, 50, 100, 200, 500]
    assert row["length_curve"][0]["majority"] == 0.125
    assert trial_row(example_result(curve_lengths=(10,)), {"attempt_id": "a"})["accuracy_100"] is None


def test_a_curve_has_a_row_for_every_validation():
    result = example_result()
    rows = curve_rows(result, "a")
    assert [row["step"] for row in rows] == [100, 200, 300]
    assert all(set(row) == set(SCHEMAS["curves"].names) for row in rows)


def test_unknown_provenance_is_an_error_that_suggests_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'git_commit'"):
        trial_row(example_result(), {"attempt_id": "a", "git_comit": "x"})
    assert {"attempt_id", "git_commit"} <= {column.name for column in PROVENANCE}


def test_the_store_needs_neither_torch_nor_ray():
    assert modules_imported("import orch.store", {"torch", "ray"}) == set()


def test_rows_from_before_a_setting_of_all_trials_have_its_past_value():
    schema = SCHEMAS["trials"]
    before = pa.Table.from_pylist([trial_row(example_result(), {"attempt_id": "a"})], schema).drop_columns(
        "supervision"
    )
    after = pa.Table.from_pylist([trial_row(example_result(supervision="every"), {"attempt_id": "b"})], schema)
    read = conform("trials", schema, union([before, after]), None)
    assert read["supervision"].to_pylist() == ["final", "every"]
    assert conform("trials", schema, before, ["supervision"])["supervision"].to_pylist() == ["final"]
    assert conform("trials", schema, before, None)["negative_eigenvalues"].null_count == 1, "it does not apply"
