"""`orch query` refuses SQL that would do more than read, and says what is wrong with SQL that fails."""

import duckdb
import pyarrow as pa
import pytest

from orch.analysis.query import sandbox
from tests.analysis.queries import ask

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
