"""The formats of an answer of `orch query`, and the files it is written to."""

import csv
import io
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analysis.queries import ask, orch

AWKWARD = (
    "SELECT NULL AS nothing, 'NaN'::DOUBLE AS nan, TIMESTAMPTZ '2025-01-01 00:00:00Z' AS time, [1, NULL] AS list,"
    " {'a': 'x|y', 'b': 'NaN'::DOUBLE} AS struct, 12::HUGEINT AS big, 1.5::DECIMAL(5, 2) AS decimal,"
    " INTERVAL '26 hours 30 seconds' AS span, true AS yes, DATE '2025-01-02' AS day, 'a\nb' AS lines, 1 AS x, 2 AS x"
)


def test_json_is_json_whatever_the_values(location):
    text = ask(location, AWKWARD, "--format", "json")
    [row] = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert row == {
        "nothing": None,
        "nan": None,
        "time": "2025-01-01T00:00:00+00:00",
        "list": [1, None],
        "struct": {"a": "x|y", "b": None},
        "big": 12,
        "decimal": 1.5,
        "span": "1 days 02:00:30",
        "yes": True,
        "day": "2025-01-02",
        "lines": "a\nb",
        "x": 1,
        "x_1": 2,
    }
    assert json.loads(ask(location, "SELECT 1 AS a WHERE false", "--format", "json")) == []
    rows = json.loads(ask(location, "SELECT ood_accuracy FROM trials", "--format", "json"))
    assert len(rows) == 8
    assert sum(row["ood_accuracy"] is None for row in rows) == 4


FAR = {
    "DATE 'infinity'": "infinity",
    "DATE '10000-01-01'": "10000-01-01",
    "DATE '0044-03-15 (BC)'": "-0043-03-15",
    "TIMESTAMP '-infinity'": "-infinity",
    "TIMESTAMPTZ '294247-01-10 04:00:54.775806Z'": "294247-01-10T04:00:54.775806+00:00",
    "'infinity'::TIMESTAMP_S": "infinity",
    "[DATE 'infinity', NULL]": ["infinity", None],
    "{'a': TIMESTAMP 'infinity'}": {"a": "infinity"},
    "MAP {DATE 'infinity': 1}": {"infinity": 1},
    "MAP {[1]: 2}": {"[1]": 2},
    "union_value(a := DATE 'infinity')": "infinity",
}
"""Values that pyarrow has no Python value for, and the texts that stand for them."""


def test_times_that_python_cannot_hold_are_texts(location):
    for format in ("markdown", "latex", "table"):
        assert "10000-01-01" in ask(location, "SELECT DATE '10000-01-01'", "--format", format)
    sql = f"SELECT {', '.join(f'{value} AS c{number}' for number, value in enumerate(FAR))}"
    [row] = json.loads(ask(location, sql, "--format", "json"))
    assert list(row.values()) == list(FAR.values())
    _, row = csv.reader(io.StringIO(ask(location, sql)))
    assert row[:3] == ["infinity", "10000-01-01", "-0043-03-15"]


def test_json_and_markdown_have_no_control_characters(location):
    sql = """SELECT chr(27) || chr(155) || chr(8238) || chr(127) || chr(917505) || 'é' AS "\x1b]0;y\x07|" """
    text = ask(location, sql, "--format", "json")
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == [{"\x1b]0;y\x07|": "\x1b\x9b\u202e\x7f\U000e0001é"}]
    assert ask(location, sql, "--format", "markdown") == "|  ]0;y \\| |\n| --- |\n|      é |\n"


def test_csv_keeps_every_digit_and_leaves_what_is_missing_empty(location):
    head, row = csv.reader(io.StringIO(ask(location, AWKWARD, "--format", "csv")))
    values = dict(zip(head, row, strict=True))
    assert (values["nothing"], values["nan"], values["yes"], values["big"]) == ("", "nan", "true", "12")
    assert (values["list"], values["lines"]) == ("[1, null]", "a\nb")
    assert json.loads(values["struct"]) == {"a": "x|y", "b": None}
    assert ask(location, "SELECT 0.1::DOUBLE + 0.2::DOUBLE AS sum") == "sum\n0.30000000000000004\n"


def test_markdown_has_as_many_cells_in_every_row(location):
    lines = ask(location, AWKWARD, "--format", "markdown").splitlines()
    assert len(lines) == 3
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert "x\\|y" in lines[2]


def test_parquet_goes_to_a_file_or_a_pipe_with_its_types(location, tmp_path):
    path = tmp_path / "answer.parquet"
    sql = "SELECT trial_id, finished_at, length_curve FROM trials ORDER BY trial_id"
    assert ask(location, sql, "--output", str(path)) == ""
    piped = orch("query", sql, "--store", location, "--format", "parquet").stdout_bytes
    for source in (path, io.BytesIO(piped)):
        table = pq.read_table(source)
        assert table.num_rows == 8
        assert table.schema.field("finished_at").type == pa.timestamp("us", tz="UTC")
        assert table["length_curve"][0].as_py()[0]["length"] == 10


@pytest.mark.parametrize(
    ("name", "start"), [("a.csv", "n\n8"), ("a.json", '[{"n": 8}]'), ("a.md", "| n |"), ("a.txt", "n\n─")]
)
def test_the_name_of_the_output_says_its_format(location, tmp_path, name, start):
    assert ask(location, "SELECT count(*) AS n FROM trials", "--output", str(tmp_path / name)) == ""
    assert (tmp_path / name).read_text().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_invalid_output_is_reported_before_the_query_runs(location, tmp_path):
    assert "make the folder first" in ask(location, "SELEC", "--output", f"{tmp_path}/none/a.csv", expect=2)
    assert "says no format" in ask(location, "SELEC", "--output", f"{tmp_path}/answer", expect=2)


def test_a_failed_query_leaves_the_earlier_output_alone(location, tmp_path):
    (tmp_path / "a.csv").write_text("before")
    ask(location, "SELECT nosuch FROM trials", "--output", f"{tmp_path}/a.csv", expect=2)
    assert (tmp_path / "a.csv").read_text() == "before"
