"""`orch query`: answers, formats, and what it refuses."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orch.analysis.query import run, sandbox
from orch.analysis.sql_statement import parse
from orch.analysis.study import VIEWS, view_schema
from orch.core.errors import InvalidQuery
from tests.analysis.queries import ask, orch

# Answers


def test_an_aggregate_over_trials_is_plain_csv_in_a_pipe(location):
    found = ask(location, "SELECT model, count(*) AS n, max(learning_rate) FROM trials GROUP BY model ORDER BY model")
    assert found == "model,n,max(learning_rate)\nrnn,4,0.01\ntransformer,4,0.01\n"


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT count(*) FROM trials", 8),
        ("SELECT count(*) FROM curves", 16),
        ("SELECT count(*) FROM attempts", 0),
        ("SELECT count(*) FROM cells", 2),
        ("SELECT count(*) FROM published", 1242),
        ("SELECT count(DISTINCT trial_id) > 50 FROM plan WHERE list_contains(sweeps, 'main')", "true"),
        ("SELECT count(*) > 100 FROM comparison WHERE status = 'missing'", "true"),
        ("SELECT max(step) FROM curves JOIN trials USING (trial_id) WHERE model = 'rnn'", 200),
        ("SELECT count(*) FROM curves NATURAL JOIN trials WHERE step = 100", 0),
        ("SELECT TRIALS.model FROM Trials ORDER BY ALL LIMIT 1", "rnn"),
        ("WITH best AS (SELECT max(ood_best) AS b FROM cells) SELECT b FROM best", 0.75),
        ("SELECT t.trial_id = t2.trial_id FROM (SELECT t FROM trials t LIMIT 1), trials t2 LIMIT 1", None),
        ("SELECT count(t) FROM trials t", 8),
        ("SELECT #1 = trial_id FROM trials LIMIT 1", "true"),
        ("SELECT a FROM trials AS renamed(a) ORDER BY a LIMIT 1", None),
        ("SELECT max(COLUMNS('ood_accuracy_r.*')) FROM trials WHERE model = 'rnn'", None),
        ("PIVOT (SELECT model, modulus FROM trials) ON model USING count(*)", None),
        ("SELECT column_name FROM (DESCRIBE trials) LIMIT 1", "trial_id"),
    ],
)
def test_views_answer(location, sql, answer):
    rows = list(csv.reader(io.StringIO(ask(location, sql))))
    assert len(rows) >= 2
    if answer is not None:
        assert rows[1] == [str(answer)]


def test_summarize_describe_and_explain_are_reading_too(location):
    assert "ood_accuracy" in ask(location, "SUMMARIZE trials")
    assert "validation_loss,DOUBLE" in ask(location, "DESCRIBE curves")
    assert "explain_value" in ask(location, "EXPLAIN SELECT model FROM trials")
    assert "explain_value" in ask(location, "explain analyze (select model from trials)")


def test_sql_may_come_from_standard_input(location):
    assert orch("query", "-", "--store", location, text="SELECT count(*) AS n FROM trials").stdout == "n\n8\n"


def test_only_what_the_sql_mentions_is_read():
    asked = {}

    def view(name):
        def read(columns):
            asked[name] = columns
            return pa.table({"a": [1, 2], "b": ["x", "y"]})

        return read

    views = {name: view(name) for name in ("one", "two")}
    assert run("SELECT a, 'two' AS two FROM one ORDER BY a", views).num_rows == 2
    assert asked.keys() == {"one"}
    assert "a" in asked["one"]
    assert "b" not in asked["one"]
    run("SELECT * FROM two", views)
    assert asked["two"] is None
    run("SELECT a, count(*) FROM two GROUP BY ALL ORDER BY ALL", views)
    assert "b" not in asked["two"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "FROM t",
        "SELECT t FROM t",
        "SELECT x FROM t AS x",
        "SELECT a FROM t NATURAL JOIN t AS u",
        "SELECT #2 FROM t",
        "SELECT b FROM t AS u(b)",
        "SELECT COLUMNS('a') FROM t",
        "SELECT a FROM t ORDER BY COLUMNS('a')",
        "SELECT * FROM t ORDER BY ALL",
        "DESCRIBE t",
        "PIVOT t ON a",
        "SELECT a FROM (PIVOT t ON a IN (1))",
    ],
)
def test_every_column_is_read_where_the_sql_may_mean_any(sql):
    with sandbox() as connection:
        assert parse(connection, sql).columns is None


def test_a_file_can_be_handed_over(location, tmp_path):
    (tmp_path / "my [1].csv").write_text("model,note\nrnn,plain\n")
    pq.write_table(pa.table({"model": ["rnn"], "colour": ["red"]}), tmp_path / "mine.parquet")
    (tmp_path / "more.json").write_text('[{"model": "rnn", "size": 3}]')
    handed = [f"a={tmp_path}/my [1].csv", f"b={tmp_path}/mine.parquet", f"c={tmp_path}/more.json"]
    options = [word for each in handed for word in ("--with", each)]
    joined = "trials JOIN a USING (model) JOIN b USING (model) JOIN c USING (model)"
    sql = f"SELECT DISTINCT note, colour, size FROM {joined}"
    assert ask(location, sql, *options) == "note,colour,size\nplain,red,3\n"


@pytest.mark.parametrize(
    ("handed", "message"),
    [
        (["trials={}/a.csv"], "the name trials is taken by a view"),
        (["Cells={}/a.csv"], "the name Cells is taken by a view"),
        (["a={}/none.csv"], "there is no file"),
        (["a={}/a.xlsx"], "use a file that ends in .csv"),
        (["a"], "write it like --with mine=my.csv"),
        (["a b={}/a.csv"], "write it like --with mine=my.csv"),
        (["a={}/a.csv", "a={}/a.csv"], "uses the name a again"),
        (["a={}/broken.parquet"], "cannot be read"),
    ],
)
def test_an_invalid_with_option_is_reported_before_anything_is_read(location, tmp_path, handed, message):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "broken.parquet").write_text("no")
    options = [word for each in handed for word in ("--with", each.format(tmp_path))]
    shown = ask(location, "SELECT 1", *options, expect=2)
    assert message in shown
    assert shown.count("\n") == 1


# Refusals


def test_a_missing_store_is_an_error(tmp_path):
    shown = ask(str(tmp_path / "none"), "SELECT * FROM trials", expect=2)
    assert "there are no results at" in shown
    assert not (tmp_path / "none").exists()
    assert ask(str(tmp_path / "none"), "SELECT count(*) AS n FROM published") == "n\n1242\n"


def test_an_empty_query_is_an_error():
    assert "give SQL, or --schema" in orch("query", expect=2).stderr


# What can be asked


def test_the_schema_explains_every_column_of_every_view():
    rows = list(csv.DictReader(io.StringIO(orch("query", "--schema").stdout)))
    assert {row["view"] for row in rows} == set(VIEWS)
    assert all(row["description"] for row in rows)
    assert [row["column"] for row in rows if row["view"] == "comparison"] == view_schema("comparison").names
    assert {row["view"] for row in csv.DictReader(io.StringIO(orch("query", "--schema", "cells").stdout))} == {"cells"}
    assert "did you mean 'cells'" in orch("query", "--schema", "cell", expect=2).stderr


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_that_the_schema_explains(location, view):
    head = ask(location, f"SELECT * FROM {view} LIMIT 1").splitlines()[0]
    assert head.split(",") == view_schema(view).names


def test_a_query_imports_no_more_than_it_needs(location):
    code = (
        "import sys; from orch.cli import main\n"
        f"try: main(['query', 'SELECT model, avg(ood_accuracy) FROM trials JOIN cells USING (model) GROUP BY 1',"
        f" '--store', {location!r}])\nexcept SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'ray', 'transformers', 'pandas', 'matplotlib', 'rich', 'safetensors'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.strip() == "[]"


def test_a_broken_view_is_not_mistaken_for_broken_sql():
    def fail(columns):
        raise InvalidQuery("the store is gone")

    with pytest.raises(InvalidQuery, match="the store is gone"):
        run("SELECT a FROM t", {"t": fail})


def test_a_column_that_sql_reserves_has_another_name():
    table = pa.table({"group": ["S3"], "table": ["x"], "order": [1], "model": ["rnn"]})
    views = {"t": lambda columns: table}
    asked = "SELECT group_name, table_name, order_name FROM t WHERE group_name = 'S3'"
    assert run(asked, views).to_pylist() == [{"group_name": "S3", "table_name": "x", "order_name": 1}]
    assert run("SELECT * FROM t", views).column_names == table.column_names
    for sql in ("SELECT group FROM t", "SELECT model FROM t GROUP BY group"):
        with pytest.raises(InvalidQuery, match='group is a word of SQL: for the column, write group_name or "group"'):
            run(sql, views)
    with pytest.raises(InvalidQuery, match="syntax error"):
        run("SELECT model FROM t GROUP BY", views)


def test_the_time_of_an_attempt_has_another_name_because_at_is_a_word_of_sql():
    views = {"attempts": lambda columns: pa.table({"at": [1, 2]})}
    assert run("SELECT max(at_name) AS last FROM attempts", views).to_pylist() == [{"last": 2}]
    with pytest.raises(InvalidQuery, match='at is a word of SQL: for the column, write at_name or "at"'):
        run("SELECT max(at) FROM attempts", views)
    with pytest.raises(InvalidQuery, match="syntax error"):
        run("SELECT now() AT TIME ZONE 'UTC' FROM attempts GROUP BY", views)


def test_the_schema_has_the_settings_of_the_users_own_models():
    example = str(Path(__file__).parents[2] / "examples" / "gated_sweep.py")
    output = orch("query", "--schema", "trials", "--sweep", example, "--store", "none").stdout
    rows = csv.DictReader(io.StringIO(output))
    assert {row["column"]: row["description"] for row in rows}["gate"].startswith("range of the gate")
