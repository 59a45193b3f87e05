"""Exports: every target gets every trial once, whatever was written before, and its own library reads it back."""

import csv
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from orch.analysis.exports import export, find_exporters
from orch.analysis.study import Study
from orch.cli import main
from orch.core.errors import OrchError
from orch.store import Store
from orch.sweeps.scales import SMOKE
from tests.analysis.finished import finish

LIGHT = ("csv", "parquet", "huggingface-datasets", "tensorboard")
HEAVY = ("mlflow", "wandb")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with three trials of one model."""
    store = Store.open(tmp_path / "runs")
    cell = SMOKE.cell(SMOKE.task("modular_addition", 2), SMOKE.model("lstm"))
    for seed, score in enumerate((0.25, 0.5, 0.75)):
        finish(store, dataclasses.replace(cell.trials[0], init_seed=seed), ood=score)
    return store


def ids_in(target: str, folder: Path) -> list[str]:
    """Return the ids of the trials that a folder has, read back without our code, each as often as it is there."""
    if target == "csv":
        with (folder / "trials.csv").open(newline="") as file:
            return [row["trial_id"] for row in csv.DictReader(file)]
    if target in ("parquet", "huggingface-datasets"):
        return [key for part in (folder / "trials").iterdir() for key in pq.read_table(part)["trial_id"].to_pylist()]
    if target == "tensorboard":
        return [path.name.rpartition("-")[2] for path in folder.glob("lstm-*")]
    if target == "wandb":
        return [path.name.rpartition("-")[2] for path in (folder / "wandb").glob("offline-run-*")]
    import mlflow.tracking

    client = mlflow.tracking.MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("orch")
    assert experiment is not None
    return [run.data.tags["orch.trial_id"] for run in client.search_runs([experiment.experiment_id])]


def check_target(target: str, store: Store, folder: Path) -> None:
    """Export a part, then all, then all again."""
    study = Study(store.uri)
    first = export(study, target, folder, where=["seed=0,1"])
    assert (first.num_new, first.num_known) == (2, 0)
    second = export(study, target, folder)
    assert (second.num_new, second.num_known) == (1, 2)
    assert export(study, target, folder).num_new == 0
    found = ids_in(target, folder)
    assert sorted(found) == sorted(store.done())


@pytest.mark.parametrize("target", LIGHT)
def test_a_repeated_export_adds_only_what_is_new(target: str, store: Store, tmp_path: Path) -> None:
    check_target(target, store, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("target", HEAVY)
def test_optional_targets_add_only_what_is_new(target: str, store: Store, tmp_path: Path) -> None:
    pytest.importorskip(target, reason="pip install 'orch[export]'")
    # In a process of its own: these libraries start threads and warn, and our tests turn warnings into errors.
    program = (
        "from pathlib import Path\nfrom orch.store import Store\n"
        "from tests.analysis.test_exports import check_target\n"
        f"check_target({target!r}, Store.open({store.uri!r}), Path({str(tmp_path / 'out')!r}))"
    )
    environment = os.environ | {"HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=Path(__file__).parents[2])


def test_there_is_a_test_for_every_target() -> None:
    assert {*find_exporters()} == {*LIGHT, *HEAVY}


def test_csv_and_parquet_have_the_numbers_of_the_store_and_missing_stays_missing(store: Store, tmp_path: Path) -> None:
    for target in ("csv", "parquet"):
        export(Study(store.uri), target, tmp_path / target)
    rows = {row["trial_id"]: row for row in store.read("trials").to_pylist()}
    table = pq.read_table(tmp_path / "parquet" / "trials")
    assert {row["trial_id"]: row for row in table.to_pylist()} == rows
    described = table.schema.field("ood_accuracy").metadata
    assert described is not None
    assert b"test_length" in described[b"description"]
    with (tmp_path / "csv" / "trials.csv").open(newline="") as file:
        for written in csv.DictReader(file):
            row = rows[written["trial_id"]]
            assert float(written["ood_accuracy"]) == row["ood_accuracy"]
            assert json.loads(written["length_curve"]) == row["length_curve"]
            assert written["block_size"] == "", "a setting that the model lacks is empty, not 0"
    curves = pq.read_table(tmp_path / "parquet" / "curves")
    assert curves.num_rows == store.read("curves").num_rows


def test_tensorboard_reads_the_curves_and_settings(store: Store, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    export(Study(store.uri), "tensorboard", tmp_path / "out", where=["seed=2"])
    (run,) = (tmp_path / "out").glob("lstm-*")
    found = events.EventAccumulator(str(run)).Reload()
    (row,) = (row for row in store.read("trials").to_pylist() if row["init_seed"] == 2)
    assert [event.value for event in found.Scalars("ood_accuracy")] == [0.75]
    curve = [point for point in store.read("curves").to_pylist() if point["trial_id"] == row["trial_id"]]
    assert [event.step for event in found.Scalars("curve/validation_loss")] == [point["step"] for point in curve]
    assert b"init_seed" in found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content


@pytest.mark.slow
def test_hugging_face_loads_the_folder(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="pip install 'orch[export]'")
    export(Study(store.uri), "huggingface-datasets", tmp_path / "out")
    program = (
        "import datasets\n"
        f"trials = datasets.load_dataset({str(tmp_path / 'out')!r}, 'trials', split='train')\n"
        f"curves = datasets.load_dataset({str(tmp_path / 'out')!r}, 'curves', split='train')\n"
        "print(trials.num_rows, curves.num_rows, sorted(trials['ood_accuracy']))"
    )
    environment = os.environ | {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split(maxsplit=2)[0] == "3"
    assert run.stdout.strip().endswith("[0.25, 0.5, 0.75]")


def test_what_cannot_be_exported_is_one_sentence(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["export", *arguments, "--store", store.uri])
        assert result.exit_code == 2
        assert result.output.count("\n") == 1, result.output
        return result.output

    assert "did you mean" in said("parket", str(tmp_path / "out")).lower()
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("mine")
    assert "is in use for something else" in said("csv", str(tmp_path / "used"))
    export(Study(store.uri), "csv", tmp_path / "out")
    assert "has an export for csv" in said("parquet", str(tmp_path / "out"))
    assert "widen --where" in said("csv", str(tmp_path / "out"), "--where", "modulus=3")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    assert "run pip install wandb" in said("wandb", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_exporting_loads_no_tracker_that_was_not_asked_for(store: Store, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom orch.analysis.exports import export\n"
        "from orch.analysis.study import Study\n"
        f"export(Study({store.uri!r}), 'csv', Path({str(tmp_path / 'out')!r}))\n"
        "assert not {'mlflow', 'wandb', 'tensorboardX', 'datasets', 'torch', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_a_folder_that_cannot_be_written_is_one_sentence(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OrchError, match="name a new folder"):
        export(Study(store.uri), "csv", tmp_path / "file")
