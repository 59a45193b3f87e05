"""Texts of a store, a model, a host or a file never steer the terminal, and reach programs unchanged."""

import csv
import io
import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import click.testing
import pytest

from orch.cli import LazyGroup, main
from tests.hostile.case import Case, examine
from tests.hostile.plan import STORE, copy_store
from tests.hostile.store import fill
from tests.hostile.store_inputs import READING

HOSTILE = "\x1b]0;owned\x07 \x1b[8mhidden \x9b31m \u202etxt \x08 [red]é"
SHOWN = " ]0;owned   [8mhidden  31m   txt   [red]é"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile") / STORE
    fill(root, HOSTILE)
    return root


@pytest.fixture
def folder(store, tmp_path):
    inside = tmp_path / "place" / "inside"
    inside.mkdir(parents=True)
    copy_store(store, inside)
    return inside


@pytest.mark.parametrize("on_terminal", [True, False])
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_no_command_passes_control_characters_on(folder, monkeypatch, words, on_terminal):
    # As if the output were a terminal: commands then use colours, tables that are fitted to it and progress.
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: on_terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    may_change = (STORE, "other", "out", "page.html", "made", "report.html")
    case = Case("terminal", words, folder, may_change=may_change)
    found = [each for each in examine(case) if each.what == "traceback" or on_terminal]
    assert not found, "\n".join(map(str, found))


def test_every_command_that_reads_a_store_is_tried():
    context = click.Context(main)
    assert isinstance(main, LazyGroup)
    readers = {
        name
        for name in main.list_commands(context)
        if any(option.name == "store" for option in main.get_command(context, name).params)
    }
    long_lasting = {"sweep", "resume", "serve", "doctor", "keep", "slurm"}
    assert readers - long_lasting <= {words[0] for words in READING}


def test_programs_get_every_character(folder):
    def output(*words):
        result = click.testing.CliRunner().invoke(main, [*words, "--store", str(folder / STORE)])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert json.loads(output("failures", "--json"))[0]["message"] == HOSTILE
    rows = csv.DictReader(io.StringIO(output("query", "SELECT error_message FROM attempts", "--format", "csv")))
    assert HOSTILE in [row["error_message"] for row in rows]
    found = json.loads(output("query", "SELECT error_message FROM attempts", "--format", "json"))
    assert {"error_message": HOSTILE} in found
    assert output("logs", "--json").rstrip("\n").endswith(HOSTILE)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words", [("failures",), ("status",), ("query", "FROM attempts", "--format", "csv"), ("logs", "--json")]
)
def test_a_real_terminal_gets_texts_without_control_characters(folder, words):
    shown = run_on_terminal([*words, "--store", str(folder / STORE)])
    assert "owned" in shown
    for each in ("\x1b]", "\x1b[8m", "\x9b", "\u202e", "\x07", "\x08"):
        assert each not in shown


def run_on_terminal(words: list[str]) -> str:
    """Run `orch` in a process of its own whose output is a terminal, and return what the terminal received."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "orch", *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    received = b""
    while True:
        if select.select([ours], [], [], 1.0)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break  # the last process that has the terminal open has ended
            received += piece
        elif process.poll() is not None:
            break
    os.close(ours)
    process.wait()
    return received.decode(errors="replace")


def test_nothing_is_printed_past_the_functions_that_clean_text():
    folder = Path(main.list_commands.__func__.__globals__["__file__"]).parent
    allowed = {"__init__.py", "_output.py", "_tables.py"}
    found = [
        path.name
        for path in folder.glob("*.py")
        if path.name not in allowed
        and any(word in path.read_text() for word in ("click.echo(", "click.secho(", " print("))
    ]
    assert not found, "print with echo or echo_data of orch.cli._output"
