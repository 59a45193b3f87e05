"""`orch query`: answers, formats, and what it refuses."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from orch.analysis.query import run, sandbox
from orch.analysis.sql_statement import parse
from orch.analysis.study import VIEWS, view_schema
from orch.cli import main
from orch.core.errors import InvalidQuery
from orch.store import Store
from tests.analysis.finished import finish, trials


@pytest.fixture(scope="module")
def location(tmp_path_factory):
    """Two cells: one of an RNN, with a diverged trial, and one of a transformer."""
    store = Store.open(tmp_path_factory.mktemp("query") / "runs")
    for place, trial in enumerate(trials()):
        finish(store, trial, ood=0.25 * place, diverged=place == 3)
    for trial in trials("transformer", layers=2):
        finish(store, trial, ood=float("nan"))
    return store.location


def orch(*arguments, expect=0, text=None):
    result = CliRunner().invoke(main, list(arguments), input=text)
    assert result.exit_code == expect, result.output
    return result


def ask(location, sql, *options, expect=0):
    result = orch("query", sql, "--store", location, *options, expect=expect)
    return result.stdout if expect == 0 else result.stderr


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


HOSTILE = {
    "INSERT INTO trials VALUES (1)": "INSERT does more",
    "UPDATE trials SET model = 'x'": "UPDATE does more",
    "DELETE FROM trials": "DELETE does more",
    "WITH gone AS (DELETE FROM trials RETURNING *) SELECT * FROM gone": "DELETE does more",
    "DROP VIEW trials": "DROP does more",
    "CREATE TABLE mine AS SELECT * FROM trials": "CREATE does more",
    "CREATE TABLE mine AS (PIVOT trials ON model)": "CREATE does more",
    "ALTER TABLE trials ADD COLUMN x INT": "ALTER does more",
    "COPY trials TO '{folder}/stolen.csv'": "COPY does more",
    "COPY (PIVOT trials ON model) TO '{folder}/stolen.csv'": "COPY does more",
    "WITH x AS (COPY trials TO '{folder}/stolen.csv') SELECT 1": "COPY does more",
    "WITH x AS (COPY trials TO '{folder}/stolen.csv') FROM (PIVOT trials ON model)": "COPY does more",
    "EXPLAIN ANALYZE COPY trials TO '{folder}/stolen.csv'": "COPY does more",
    "EXPORT DATABASE '{folder}/stolen'": "EXPORT does more",
    "IMPORT DATABASE '{folder}'": "IMPORT does more",
    "ATTACH '{folder}/stolen.db'": "ATTACH does more",
    "ATTACH 'https://example.com/a.db'": "ATTACH does more",
    "INSTALL httpfs": "INSTALL does more",
    "LOAD httpfs": "LOAD does more",
    "SET enable_external_access = true": "SET does more",
    "RESET lock_configuration": "RESET does more",
    "PRAGMA version": "PRAGMA does more",
    "CALL range(3)": "CALL does more",
    "CREATE SECRET (TYPE s3)": "CREATE does more",
    "PREPARE x AS SELECT 1": "PREPARE does more",
    "BEGIN": "BEGIN does more",
    "SELECT 1; SELECT 2": "this is 2 statements",
    "SELECT 1; COPY trials TO '{folder}/stolen.csv'": "this is 2 statements",
    "": "this is no statement",
    "/* nothing */": "this is no statement",
    "SELECT * FROM read_csv('/etc/passwd')": "--with name=FILE",
    "SELECT * FROM \"READ_CSV\" ('/etc/passwd')": "--with name=FILE",
    "SELECT * FROM read_csv/**/('/etc/passwd')": "--with name=FILE",
    "FROM system.main.read_csv('/etc/passwd')": "--with name=FILE",
    "SELECT * FROM '/etc/passwd'": "--with name=FILE",
    "SELECT * FROM '{folder}/secret.csv'": "--with name=FILE",
    "SELECT * FROM 'https://example.com/a.csv'": "--with name=FILE",
    "SELECT * FROM 's3://bucket/a.parquet'": "--with name=FILE",
    "FROM glob('/etc/*')": "--with name=FILE",
    "FROM read_text('/etc/passwd')": "--with name=FILE",
    "FROM read_blob('/etc/passwd')": "--with name=FILE",
    "FROM read_json('{folder}/secret.csv')": "--with name=FILE",
    "FROM read_parquet('{folder}/secret.csv')": "--with name=FILE",
    "FROM sniff_csv('/etc/passwd')": "--with name=FILE",
    "PIVOT read_csv('{folder}/secret.csv') ON a": "--with name=FILE",
    "SELECT model FROM trials WHERE model IN (SELECT content FROM read_text('/etc/passwd'))": "--with name=FILE",
    "EXPLAIN SELECT * FROM read_csv('/etc/passwd')": "--with name=FILE",
    "SELECT getenv('HOME')": "getenv is not allowed",
    "SELECT * FROM query('SELECT 1')": "query is not allowed",
    "SELECT * FROM arrow_scan(1, 2, 3)": "arrow_scan is not allowed",
    "SELECT * FROM pandas_scan(1)": "pandas_scan is not allowed",
    "FROM duckdb_settings()": "duckdb_settings is not allowed",
    "SHOW TABLES": "orch query --schema",
    "SELECT location FROM location": "there is no view 'location'",
}


@pytest.mark.thorough
@pytest.mark.parametrize("sql", HOSTILE)
def test_hostile_sql_is_refused_in_one_sentence(location, tmp_path, sql):
    (tmp_path / "secret.csv").write_text("a,b\nsecret,1\n")
    shown = ask(location, sql.format(folder=tmp_path), expect=2)
    assert shown.startswith("error: ")
    assert HOSTILE[sql] in shown
    assert shown.count("\n") == 1
    assert "secret,1" not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert ask(location, "SELECT count(*) AS n FROM trials") == "n\n8\n"


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "ATTACH '{folder}/stolen.db'",
        "EXPORT DATABASE '{folder}/stolen'",
        "FROM read_csv('{folder}/secret.csv')",
        "FROM '{folder}/secret.csv'",
        "FROM glob('{folder}/*')",
        "FROM read_text('{folder}/secret.csv')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET temp_directory = '{folder}'",
        "SELECT * FROM in_this_process",
    ],
)
def test_the_sandbox_holds_without_any_look_at_the_sql(tmp_path, sql):
    in_this_process = pa.table({"a": [1]})
    (tmp_path / "secret.csv").write_text("a,b\nsecret,1\n")
    with sandbox() as connection, pytest.raises(duckdb.Error):
        connection.execute(sql.format(folder=tmp_path)).fetchall()
    assert in_this_process.num_rows == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT learnin_rate FROM trials", "learning_rate"),
        ("SELECT model FROM trils", "did you mean 'trials'"),
        ("SELEC 1", "syntax error"),
        ("SELECT nosuch(model) FROM trials", "nosuch"),
        ("SELECT model::INT FROM trials", "Could not convert"),
        ("SELECT $1", "parameters"),
    ],
)
def test_sql_that_does_not_work_is_one_sentence_with_a_hint(location, sql, message):
    shown = ask(location, sql, expect=2)
    assert message in shown
    assert shown.count("\n") == 1
    assert "Traceback" not in shown


def test_a_missing_store_is_an_error(tmp_path):
    shown = ask(str(tmp_path / "none"), "SELECT * FROM trials", expect=2)
    assert "there are no results at" in shown
    assert not (tmp_path / "none").exists()
    assert ask(str(tmp_path / "none"), "SELECT count(*) AS n FROM published") == "n\n1242\n"


def test_an_empty_query_is_an_error():
    assert "give SQL, or --schema" in orch("query", expect=2).stderr


# Formats


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


def test_the_schema_has_the_settings_of_the_users_own_models():
    example = str(Path(__file__).parents[2] / "examples" / "gated_sweep.py")
    output = orch("query", "--schema", "trials", "--sweep", example, "--store", "none").stdout
    rows = csv.DictReader(io.StringIO(output))
    assert {row["column"]: row["description"] for row in rows}["gate"].startswith("range of the gate")
