"""Tables for people: aligned, readable on a narrow terminal, and harmless whatever they hold."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pyarrow as pa
import pytest
from rich.text import Text

from orch.cli._tables import print_rows, text_table
from tests.command_line import orch

TABLE = pa.table(
    {
        "model": ["bilinear", "block_diagonal"],
        "accuracy": [1.0, -0.12345678],
        "steps": [100, 123456],
        "remark": ["", "partial: 3 of 6 trials, 1 failed, 2 diverged"],
    }
)


def shown(table, width):
    found = text_table(table)
    return found.plain() if width is None else found.fitted(width)


def lines(table, width):
    return shown(table, width).splitlines()


def test_numbers_stand_to_the_right_and_texts_to_the_left():
    assert lines(TABLE, None) == [
        "model           accuracy   steps  remark",
        "─" * 78,
        "bilinear               1     100",
        "block_diagonal   -0.1235  123456  partial: 3 of 6 trials, 1 failed, 2 diverged",
    ]


@pytest.mark.parametrize("width", [50, 60, 70, 77])
def test_on_a_narrow_terminal_texts_are_folded_and_nothing_is_lost(width):
    found = lines(TABLE, width)
    assert max(map(len, found)) <= width
    start = found[0].index("remark")
    assert " ".join(line[start:].strip() for line in found[3:]) == TABLE["remark"][1].as_py()


def test_no_word_of_up_to_24_letters_is_broken_at_any_width():
    table = pa.table(
        {
            "model": ["block_diagonal", "signed_gates"],
            "problem": ["turnstile #ea44", "size 5"],
            "mean ± sd": ["0.96 ± 0.01", "0.02 ± 0.01"],
            "seeds that learn": ["2 of 2 (0.34–1.00)", "0 of 2 (0.00–0.66)"],
            "perfect, then fail": ["0 of 2", "–"],
        }
    )
    entries = [*table.column_names, *(text for column in table.columns for text in column.to_pylist())]
    for width in range(45, 90):
        found = lines(table, width)
        assert max(map(len, found)) <= width
        assert {word for entry in entries for word in entry.split()} <= set(" ".join(found).split())


def test_a_table_too_wide_for_the_terminal_is_shown_one_row_at_a_time():
    found = lines(TABLE, 30)
    assert found[0].startswith("── row 1 ─")
    assert found[1] == "model     bilinear"
    assert found[-3:] == ["remark    partial: 3 of 6", "          trials, 1 failed, 2", "          diverged"]


def test_missing_nan_and_nested_values_are_readable():
    table = pa.table(
        {
            "a": pa.array([None, float("nan")]),
            "b": pa.array([[1, None], None], pa.list_(pa.int64())),
            "c": pa.array([1735689600123456, None], pa.timestamp("us", tz="UTC")),
            "d": [True, False],
        }
    )
    assert lines(table, None)[2:] == [
        "  –  [1, null]  2025-01-01 00:00:00  true",
        "nan  –          –                    false",
    ]


def test_control_characters_are_not_passed_on_to_the_terminal():
    found = shown(pa.table({"a": ["\x1b[31mred\x07\ntwo\tlines"]}), 40)
    assert "\x1b" not in found
    assert "\x07" not in found
    assert found.splitlines()[2] == " [31mred  two lines"


@pytest.mark.parametrize("width", [None, 12, 40])
def test_text_that_looks_like_markup_is_shown_as_it_is(width):
    table = pa.table({"[red]a[/red]": ["[bold]x[/bold]", "[/]", ":smile:"], "\x1bb": [1, 2, 3]})
    text = shown(table, width)
    for word in ("[red]a[/red]", "[bold]x[/bold]", "[/]", ":smile:"):
        assert word in text.replace("\n", "").replace(" ", "") or width == 12
    assert "\x1b" not in text


def test_rows_are_printed_under_a_title_with_thousands_separators(capsys):
    rows = [
        {"model": "rnn\x1b[2J", "parameters": 1234567, "chance": 0.33333333, "remark": None},
        {"model": "lstm", "parameters": "none", "chance": 0.5, "remark": "[b]" + "long " * 50},
    ]
    print_rows(rows, title="Models\x07 [i]")
    assert capsys.readouterr().out.splitlines() == [
        "Models  [i]",
        "model    parameters  chance  remark",
        "─" * 282,
        "rnn [2J   1,234,567  0.3333  –",
        f"lstm           none     0.5  {rows[1]['remark']}".rstrip(),
    ]


def test_coloured_cells_are_plain_in_a_pipe(capsys):
    print_rows([{"inputs": "accuracy", "10": Text("0.950", "green", justify="right")}], title="")
    assert capsys.readouterr().out.splitlines()[1:] == ["inputs       10", "─" * 15, "accuracy  0.950"]


def test_a_table_without_rows_still_has_its_head():
    assert lines(TABLE.slice(0, 0), 80)[0] == "model  accuracy  steps  remark"


def test_a_terminal_shows_only_the_beginning_of_a_long_table():
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    code = (
        "import pyarrow as pa; from orch.cli._output import write_table\n"
        "write_table(pa.table({'number': range(1000), 'text': ['word'] * 1000}))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=follower, stderr=subprocess.PIPE, env=environment
    ) as run:
        os.close(follower)
        shown = b""
        while True:
            try:
                shown += os.read(leader, 1 << 16)
            except OSError:  # the other end is closed
                break
        assert run.stderr is not None
        message = run.stderr.read().decode()
    os.close(leader)
    found = shown.decode().splitlines()
    assert found[0] == "number  text"
    assert found[-1] == "   199  word"
    assert message == "800 more rows: use --output FILE or a pipe to get them all\n"


def test_rows_may_lack_columns_of_other_rows(capsys):
    print_rows([{"model": "rnn", "10": 1.0}, {"model": "lstm", "400": 0.5}], title="Accuracy")
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line[:1] in "rlm"] == [
        ["model", "10", "400"],
        ["rnn", "1", "–"],
        ["lstm", "–", "0.5"],
    ]


def test_the_list_of_models_names_the_width_of_each_where_they_differ(tmp_path):
    study = tmp_path / "study.py"
    study.write_text(
        "from torch import nn\nimport orch\n\n\n@orch.model\nclass Sums(nn.Module):\n"
        "    def __init__(self, vocabulary, width=32):\n        super().__init__()\n"
        "        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)\n\n"
        "    def forward(self, tokens):\n        return self.head(self.embedding(tokens).cumsum(1))\n\n\n"
        "cells = orch.grid(models=[Sums], tasks=['parity_check'], learning_rates=(1e-2,), seeds=1, steps=10)\n"
    )
    lines = orch("models", str(study)).output.splitlines()
    assert lines[0] == "Parameters for Addition modulo 5"
    assert lines[3].split()[:2] == ["sums", "32"]
    assert orch("models").output.splitlines()[0] == "Parameters for Addition modulo 5, width 256"
