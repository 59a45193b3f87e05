"""What a user's file prints is a message: it never stands among data, and cannot control the terminal."""

import json
import sys
import threading

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.core.prints import prints_are_messages
from orch.store import Store
from tests.store.example import write_example

FILE = '''\
"""For tests."""
from torch import nn

import orch

print("\\x1b[8mloaded\\x1b]0;owned\\x07")


@orch.model
class Talking(nn.Module):
    def __init__(self, vocabulary, width=8):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        print("\\x1b[8mmade")

    def forward(self, tokens):
        return self.head(self.embedding(tokens).cumsum(1))


def cells(scale, results):
    print("\\x1b[8masked")
    yield scale.cell(scale.task("modular_addition", 2), Talking(width=WIDTH), learning_rates=(1e-2,))
'''


@pytest.mark.parametrize(
    ("width", "words"),
    [(8, ("plan", "--json")), (9, ("results", "--format", "json")), (10, ("results", "--format", "csv"))],
)
def test_what_a_file_prints_is_a_message_and_no_data(tmp_path, width, words):
    path = tmp_path / "talking.py"
    path.write_text(FILE.replace("WIDTH", f"{width}"))  # shapes of a model are kept in memory
    write_example(Store.open(tmp_path / "runs"))
    command = [words[0], str(path), *words[1:], "--scale", "smoke", "--store", str(tmp_path / "runs")]
    done = CliRunner().invoke(main, command)
    for text in ("loaded", "made", "asked"):
        assert text in done.stderr
        assert text not in done.stdout
    assert done.stderr.replace("\n", "").isprintable()
    assert done.exit_code == 0
    if "csv" not in words:
        json.loads(done.stdout)


def test_the_streams_are_back_after_several_threads_in_any_order():
    before = sys.stdout, sys.stderr
    entered, leave = threading.Event(), threading.Event()

    def other():
        with prints_are_messages():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with prints_are_messages():
        thread.start()
        entered.wait()
    leave.set()
    thread.join()
    assert (sys.stdout, sys.stderr) == before
