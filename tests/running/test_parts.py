"""The files that a unit leaves in a store."""

from collections import Counter

from orch.running.worker import UnitRun
from orch.store import Store
from tests.running.test_checkpoints import TRIALS, request_for


def test_a_pack_writes_one_part_of_each_table_for_its_starts_and_one_for_its_results(tmp_path):
    store = Store.open(tmp_path / "runs")
    assert UnitRun(request_for(store, checkpoint_seconds=60)).run_for(60)["done"]
    assert store.done() == {trial.id for trial in TRIALS}
    parts = Counter(path.relative_to(store.uri).parts[0] for path in (tmp_path / "runs").rglob("*.parquet"))
    assert parts == {"trials": 1, "curves": 1, "attempts": 2}
