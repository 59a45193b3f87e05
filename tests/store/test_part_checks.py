"""What a part may unpack to."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orch.store import part_checks
from orch.store.part_checks import check_unpacked

LONG = "x" * 1_000_000


def part(path, places, texts, **options):
    """Write a part of one column, `trial_id`, with the texts at these places."""
    pq.write_table(pa.table({"trial_id": pa.array(texts).take(pa.array(places))}), path, compression="zstd", **options)
    return str(path)


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Check a part of these texts, and return the columns of which every value was counted."""
    counted = []
    count = part_checks._repeated_bytes

    def keep(source, metadata, columns, most):
        counted.extend(columns)
        return count(source, metadata, columns, most)

    monkeypatch.setattr(part_checks, "_repeated_bytes", keep)

    def check(places, texts, **options):
        path = part(tmp_path / "part.parquet", places, texts, **options)
        with pq.ParquetFile(path) as file:
            check_unpacked(path, file, None)
        return counted

    return check


@pytest.mark.parametrize("texts", [[LONG], [LONG, "a"], ["a", LONG]], ids=["alone", "first", "last"])
def test_a_long_text_that_occurs_often_is_refused(check, texts):
    places = [*range(len(texts)), *[texts.index(LONG)] * 300]
    with pytest.raises(ValueError, match=r"unpack to more than 268,435,456"):
        check(places, texts)


@pytest.mark.parametrize("rows", [1 << 20, 500], ids=["one group", "several groups"])
def test_a_long_text_that_occurs_once_among_many_short_ones_is_read(check, rows):
    assert check([0, *[1] * 3000], [LONG, "a"], row_group_size=rows) == ["trial_id"]


def test_ids_are_not_counted_one_by_one(check):
    ids = [f"{number:032x}" for number in range(200_000)]
    assert check(range(len(ids)), ids, row_group_size=1 << 17) == []
    assert check([number // 2 for number in range(len(ids))], ids, row_group_size=1 << 17) == []
