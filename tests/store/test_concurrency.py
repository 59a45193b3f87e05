import json

import pytest

from orch.store import Store
from tests.store.example import POINTS, ids, parts
from tests.store.processes import finish, start

WRITERS, ROWS = 4, 50


@pytest.mark.thorough
def test_many_writers_two_compactions_and_a_reader_at_once(tmp_path):
    stop = tmp_path / "stop"
    store = tmp_path / "store"
    reader = start("read_until", store, stop)
    compactors = [start("compact_until", store, stop) for _ in range(2)]
    writers = [start("write", store, n * ROWS, (n + 1) * ROWS) for n in range(WRITERS)]
    for writer in writers:
        finish(writer)
    stop.touch()
    report = json.loads(finish(reader))
    merged = [int(finish(compactor)) for compactor in compactors]

    assert report["problems"] == []
    assert report["reads"] > 5, "the reader read too few times to prove anything"
    assert sum(merged) > 5, "too little was merged to prove anything"
    opened = Store.open(store)
    assert opened.done() == ids(range(WRITERS * ROWS))
    assert opened.read("trials").num_rows == WRITERS * ROWS
    assert opened.read("curves").num_rows == WRITERS * ROWS * POINTS
    assert not (store / "damaged").exists()
    opened.compact(min_parts=2)
    assert len(parts(store, "trials")) <= 10
    assert Store.open(store).read("curves").num_rows == WRITERS * ROWS * POINTS
