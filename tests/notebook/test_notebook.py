"""`orch.sweep` in the kernel of a real notebook, on real Ray; the example notebook and the same study as a file."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from orch.store import Store
from orch.store.drivers import live_drivers
from tests.engine.conftest import Sweeps, wait_for
from tests.notebook.kernel import Book, html, notebook, printed

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = "eval_every=10, validation_samples=32, test_samples=32"

CELLS = """
import orch
import torch
from torch import nn

GAIN = 1.0

class Sums(nn.Module):
    def __init__(self, vocabulary, width=8):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(torch.tanh(GAIN * self.embedding(tokens).cumsum(1)))

@orch.task(inputs=2, states=2)
def parity(state, symbol):
    return (state + symbol) % 2
"""

STATE = """
import os
import signal
import ray

def state():
    return signal.getsignal(signal.SIGINT), {name for name in os.environ if name.startswith(("OMP_", "RAY_", "TUNE_"))}

"""


def sweep(models: str, steps: int, more: str = "") -> str:
    return (
        f"study = orch.sweep(models=[{models}], tasks=[parity], learning_rates=1e-2, seeds=2, steps={steps}, width=8,"
        f" test_length=20, store='runs', name='mine', {SMALL}{more})"
    )


def test_the_example_notebook_runs_at_small_scale(tmp_path):
    book = nbformat.read(EXAMPLES / "word_problem.ipynb", as_version=4)
    shown = ""
    with notebook(tmp_path) as kernel:
        for cell in book.cells:
            if cell.cell_type == "code":
                source = cell.source.replace("steps=4000", f"steps=20, width=8, {SMALL}").replace("seeds=3", "seeds=1")
                shown += printed(kernel.run(source))
    assert "16 trials finished" in shown
    assert "negative no" in shown
    assert (tmp_path / "word_problem.pdf").stat().st_size > 5000
    rows = Store.open(tmp_path / "runs").read("trials", ["model", "task"]).to_pylist()
    assert {(row["model"], row["task"]) for row in rows} == {
        (model, task) for model in ("plain_delta", "lstm", "block_diagonal") for task in ("s3", "a5")
    }


def test_the_example_file_runs_at_small_scale(tmp_path):
    sweeps = Sweeps(tmp_path)
    try:
        where = ("--where", "seed=0,learning_rate=0.001", "--where", "task=s3", "--where", "model=plain_delta,lstm")
        shown = sweeps.run("sweep", str(EXAMPLES / "word_problem.py"), "--scale", "smoke", *where).stdout
    finally:
        sweeps.end_all()
    assert "3 trials finished" in shown
    assert "plain_delta (negative no)" in shown


def test_a_notebook_and_the_file_have_the_same_definitions():
    book = nbformat.read(EXAMPLES / "word_problem.ipynb", as_version=4)
    text = (EXAMPLES / "word_problem.py").read_text()
    definitions = [cell.source for cell in book.cells if cell.cell_type == "code"][:2]
    assert all(source in text for source in definitions)
    assert len("\n".join(definitions)) > 1000


def press_stop(kernel: Book, store: Store) -> None:
    """Interrupt the kernel, as a notebook's stop button does, once a trial has reported."""
    wait_for(lambda: any(driver.counts.get("trials") for driver in live_drivers(store)))
    os.kill(kernel.process_id, signal.SIGINT)


def test_an_interrupted_sweep_leaves_the_kernel_usable_and_resumes_here_and_in_a_shell(tmp_path):
    store = Store.open(tmp_path / "runs")
    with notebook(tmp_path) as kernel:
        kernel.run(CELLS)
        kernel.run(STATE + "before = state()")
        with ThreadPoolExecutor() as threads:
            pressed = threads.submit(press_stop, kernel, store)
            stopped = printed(kernel.run(sweep("Sums, 'lstm'", 1_000_000)))
            pressed.result()
        assert "stopped: interrupted; 4 trials left: study.resume() continues" in stopped
        assert printed(kernel.run("state() == before")) == "True"
        assert "0 of 4 trials done, study.resume() continues" in printed(kernel.run("study"))
        assert any((tmp_path / "runs" / "checkpoints").iterdir()), "nothing was checkpointed"

        # The same name with fewer steps is another grid of the same study.
        done = kernel.run(sweep("Sums, 'lstm'", 20))
        assert "4 trials finished" in printed(done)
        assert any("<td>4/4</td>" in each for each in html(done)), "the display does not show the end"
        kernel.run("first = study.trials()")

        # A class that means something else now meets none of its old results.
        kernel.run("GAIN = 2.0")
        assert "trials finished" in printed(kernel.run(sweep("Sums, 'lstm'", 20)))
        kernel.run("old, new = (set(frame.query('model == \"sums\"').trial_id) for frame in (first, study.trials()))")
        assert printed(kernel.run("len(old), len(new), len(old & new)")) == "(2, 2, 0)"
        assert "nothing to do" in printed(kernel.run("study.resume(); None"))
    sweeps = Sweeps(tmp_path)
    try:
        sweeps.run("discard", "--where", "model=sums", "--reason", "a test", "--yes")
        assert "2 trials finished" in sweeps.run("resume").stdout, "the code in the store does not suffice"
    finally:
        sweeps.end_all()


def test_an_error_is_one_sentence_in_a_notebook(tmp_path):
    bad = "handle = open('x', 'w')\nclass Bad(Sums):\n    def extra(self):\n        return handle\n"
    with notebook(tmp_path) as kernel:
        kernel.run(CELLS)
        with pytest.raises(CellExecutionError) as error:
            kernel.run(bad + sweep("Bad", 20))
    assert "error: handle is a TextIOWrapper, which cannot be sent to workers" in str(error.value)
    assert "live_code.py" not in str(error.value)
    assert not (tmp_path / "runs").exists()
