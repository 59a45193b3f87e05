"""What cannot be used is refused in one sentence, before anything starts."""

import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.store import Store
from tests.command_line import orch
from tests.store.example import write_example

TRAIN = ("train", "--model", "bilinear", "--task", "parity_check", "--steps", "1")


def refused(*words: object, several: bool = False) -> str:
    """Run a command that must be refused, and return its message: a single one, unless it may be one of several."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 2, (result.output, result.exception)
    messages = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(messages) == 1 or (several and messages), result.stderr
    return "\n".join(message.removeprefix("error: ") for message in messages)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sweep", "demo", "--weights-mb", "nan"), "nan is not a number that can be used"),
        (("sweep", "demo", "--max-hours", "inf"), "inf is not a number that can be used"),
        (("search", *TRAIN[1:-2], "--vary", "width=8,16", "--seeds", "9" * 25), "is not a number that can be used"),
        (("report", "--check", "nan"), "nan is not a number that can be used"),
        ((*TRAIN, "--learning-rate", "nan"), "nan is not a number that can be used"),
        ((*TRAIN, "--curve-lengths", f"5,{10**30}"), "is not a number that can be used"),
        ((*TRAIN, "--threads", "99999"), "--threads 99999 is more than this machine has cores: use at most"),
        ((*TRAIN, "--save", ""), "--save '.' is no name of a file"),
        ((*TRAIN, "--save", "x" * 300), "is no name of a file"),
        (("status", "--store", "abfs://"), "abfs://"),
        (("status", "--store", ""), "'' names no store"),
        (("query", "SELECT 1", "--timeout", "nan"), "nan is not a number that can be used"),
        (("query", "SELECT 1", "--memory", "-1"), "-1"),
        (("query", "x" * 2_000_000), "the query has 2,000,000 characters"),
    ],
)
def test_an_option_that_is_no_value_is_refused(words, message):
    assert message in refused(*words)


def test_every_number_of_every_command_is_bounded():
    context = main.make_context("orch", ["status"], resilient_parsing=True)
    for name in main.list_commands(context):
        for option in main.get_command(context, name).params:
            if option.type.name in ("integer", "float", "integer range", "float range"):
                assert option.callback is not None, f"orch {name} takes nan or 10**30 for {option.name}"


GRID = "import orch\ncells = orch.grid(models=['bilinear'], tasks=['parity_check'], learning_rates=1e-3, {})\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GRID.format("seeds=1, width=8.5"), "width 8.5 is not a whole number"),
        (GRID.format("seeds=10_000_000"), "10,000,000 trials, and at most 1,000,000 can be planned"),
        (GRID.format("seeds=range(10**12)"), "1,000,000,000,000 trials, and at most 1,000,000 can be planned"),
        (GRID.format("seeds=1, stop_loss=float('nan')"), "stop_loss nan is not a number"),
        (GRID.format("seeds=1, steps=10**30"), "steps 1000.* is too large"),
    ],
)
def test_a_sweep_file_is_refused_with_the_reason(tmp_path, text, message):
    (tmp_path / "own.py").write_text(text)
    assert re.search(message, refused("plan", tmp_path / "own.py", "--store", tmp_path / "runs"))


def test_a_config_that_was_made_with_wrong_types_is_refused(tmp_path):
    text = (
        "from orch.models.bilinear.config import Config\nimport orch\n"
        "cells = orch.grid(models=[Config(width=8.5)], tasks=['parity_check'], seeds=1)\n"
    )
    (tmp_path / "own.py").write_text(text)
    assert "width 8.5 is not a whole number" in refused("plan", tmp_path / "own.py", "--store", tmp_path / "runs")


@pytest.mark.parametrize("name", ["own.py", "l.yaml", "l.sh", "t.csv"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    path = tmp_path / name
    os.mkfifo(path)
    command = {"py": ("plan",), "csv": ("tasks", "automaton", "--table")}.get(path.suffix[1:], ("cluster", "check"))
    assert "file" in refused(*command, path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_workers: 2026-01-01", "max_workers is a date: put it in quotes"),
        ("max_workers: '4'", "max_workers is '4', and not a whole number"),
        ("provider: {head_ip: 5}", "provider.head_ip is 5, and not a text"),
        ("available_node_types: {w: {node_config: {InstanceType: {}}}}", "InstanceType is {}, and not a text"),
    ],
)
def test_a_launcher_file_with_a_value_of_another_type_is_refused(tmp_path, text, message):
    (tmp_path / "l.yaml").write_text(text)
    assert message in refused("cluster", "check", tmp_path / "l.yaml", several=True)
    assert message in refused("watch", "--once", "--price", tmp_path / "l.yaml", "--store", "bundled")


def test_a_query_ends_at_its_limits(tmp_path):
    write_example(Store.open(tmp_path))
    limits = ("--store", tmp_path, "--memory", "0.2")
    endless = "SELECT count(*) FROM range(100000000000) a, range(100000000000) b"
    message = refused("query", endless, "--store", tmp_path, "--timeout", "1")
    assert "took longer than 1 s: ask for less, or give orch query a larger --timeout" in message
    message = refused("query", "SELECT repeat('x', 400000000) FROM range(10)", *limits)
    assert "needs more than 200MB of memory: ask for less, or give orch query a larger --memory" in message


def test_a_file_that_unpacks_to_24_gigabytes_is_refused(tmp_path):
    indices = pa.array([0], pa.int32()).take(pa.array([0] * 24_000))
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 1_000_000]))
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"trial_id": texts, "attempt_id": texts}), path, compression="zstd")
    assert path.stat().st_size < 11_000
    message = refused("query", "FROM bomb", "--with", f"bomb={path}", "--timeout", "60", "--memory", "0.3")
    assert "bomb.parquet cannot be read (it needs more than 300MB of memory)" in message
    store = Store.open(tmp_path / "runs")
    trial_id = write_example(store)
    path.rename(tmp_path / "runs" / "trials" / "0" / "9-bomb.parquet")
    with pytest.warns(UserWarning, match=r"9-bomb.parquet .* is damaged .* bytes unpack to more than 268,435,456\)"):
        assert trial_id in orch("query", "SELECT trial_id FROM trials", "--store", tmp_path / "runs").stdout
