"""A kernel of a real notebook, in which tests run cells."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
SECONDS = 240


class Book:
    """Runs cells one after the other in one kernel."""

    def __init__(self, folder: Path):
        spec = KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        manager = KernelManager()
        manager._kernel_spec = spec  # this environment's Python, whichever kernels are installed
        self.notebook = nbformat.v4.new_notebook()
        self.client = NotebookClient(
            self.notebook, km=manager, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}
        )

    def run(self, source: str) -> Any:
        """Run a cell and return it, with its outputs. An error in it is raised here."""
        cell = nbformat.v4.new_code_cell(source)
        self.notebook.cells.append(cell)
        self.client.execute_cell(cell, len(self.notebook.cells) - 1)
        return cell

    @property
    def process_id(self) -> int:
        return int(self.client.km.provisioner.pid)


def printed(cell: Any) -> str:
    """Return what a cell printed and its last value, as text."""
    texts = [output.get("text", "") for output in cell.outputs]
    texts += [output["data"].get("text/plain", "") for output in cell.outputs if "data" in output]
    return "".join(texts)


def html(cell: Any) -> list[str]:
    """Return the HTML of a cell's outputs."""
    return [output["data"]["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


@contextmanager
def notebook(folder: Path) -> Iterator[Book]:
    """Start a kernel in a folder, and end it."""
    book = Book(folder)
    with book.client.setup_kernel(cleanup_kc=True):
        yield book
