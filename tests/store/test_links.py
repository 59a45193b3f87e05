"""A store stays inside its folder: links and special files below its root are refused by name."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from orch.analysis.bundle import bundle
from orch.cli import main
from orch.core.errors import UnsafePath
from orch.store import Store
from tests.command_line import orch
from tests.store.example import ids, saved, write_example

NUM_FILES = 20


def fill(folder: Path, seeds: int = NUM_FILES) -> Store:
    store = Store.open(folder)
    for seed in range(seeds):
        write_example(store, seed)
    store.put_checkpoint("t", saved(b"x"))
    store.put_json("sweeps/a.json", {"sweeps": ["demo"], "scale": "laptop", "where": [], "seconds": {}, "waiting": 0})
    return store


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("linked", ["trials", "trials/0", "curves/0"])
def test_files_outside_a_store_are_never_compacted(tmp_path, linked):
    fill(tmp_path / "outside")
    before = contents(tmp_path / "outside")
    fill(tmp_path / "store", seeds=2)
    shutil.rmtree(tmp_path / "store" / linked)
    (tmp_path / "store" / linked).symlink_to(tmp_path / "outside" / linked)
    result = CliRunner().invoke(main, ["compact", "--store", str(tmp_path / "store")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert f"{linked} of the store at {tmp_path / 'store'} is a symbolic link: put in its place" in result.stderr
    assert contents(tmp_path / "outside") == before


def test_hidden_files_of_others_in_the_folder_of_a_store_stay(tmp_path):
    """The folder may be that of a project, or a home folder."""
    store = fill(tmp_path, seeds=2)
    names = (".gitignore", ".git/.index", "photos/.notes.txt", "trials/.nfs0000000000000001", ".cache.1a2b3c4")
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("text")
        os.utime(path, (0, 0))
    store.compact(min_parts=2)
    assert [name for name in names if not (tmp_path / name).exists()] == []


USES = {
    "read": lambda store: store.get_json("sweeps/a.json"),
    "write": lambda store: store.put_json("sweeps/a.json", {}),
    "delete": lambda store: store.delete("sweeps/a.json"),
    "list": lambda store: store.list_json("sweeps"),
    "verify": lambda store: list(store.examine()),
}


def link_file(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def link_folder(path: Path) -> None:
    path.parent.rmdir()
    outside = path.parents[2] / "outside"
    outside.mkdir()
    (outside / path.name).write_text("{}")
    path.parent.symlink_to(outside)


def open_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", [link_file, link_folder, os.mkfifo, open_socket], ids=lambda make: make.__name__)
def test_a_link_or_a_special_file_is_neither_read_nor_replaced_nor_followed(tmp_path, monkeypatch, make, use):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    store = fill(tmp_path / "store", seeds=1)
    place = Path("store/sweeps/a.json")
    place.unlink()
    make(Path.cwd() / place if make is link_folder else place)
    with pytest.raises(UnsafePath, match=r"^sweeps\S* of the store at \S+ is a (symbolic link|pipe, a socket)"):
        USES[use](store)
    assert os.path.lexists(place)


def test_a_pipe_among_parts_is_named_and_not_waited_for(tmp_path):
    store = fill(tmp_path, seeds=1)
    os.mkfifo(tmp_path / "trials" / "0" / "pipe.parquet")
    with pytest.raises(UnsafePath, match=r"trials/0/pipe.parquet .* is a pipe"):
        store.done()


def test_the_root_of_a_store_may_be_a_link(tmp_path):
    fill(tmp_path / "disk" / "store", seeds=2)
    (tmp_path / "runs").symlink_to(tmp_path / "disk" / "store")
    store = Store.open(tmp_path / "runs")
    assert store.compact(min_parts=2).merged == 4
    assert store.done() == ids(range(2))
    assert (tmp_path / "runs").is_symlink()


@pytest.mark.parametrize(
    "command",
    [
        ["query", "SELECT 1 AS one", "--output", "link.csv"],
        ["results", "--output", "link.csv"],
        ["report", "--output", "link.csv"],
        ["checklist", "--output", "link.csv"],
        ["claims", "--output", "link.csv"],
        ["bundle", "--output", "link.csv"],
        ["reproduction", "--output", "link.csv"],
        ["train", "--model", "rnn", "--task", "parity_check", "--save", "link.csv"],
        ["train", "--model", "rnn", "--task", "parity_check", "--checkpoint", "link.csv"],
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)
def test_no_output_replaces_a_link(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "mine.csv"
    target.write_text("mine")
    Path("link.csv").symlink_to(target)
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert result.stderr == f"error: {command[-2]} link.csv is a symbolic link: name what it leads to, {target}\n"
    assert Path("link.csv").is_symlink()
    assert target.read_text() == "mine"


def test_a_bundle_replaces_no_folder_that_has_something_else_too(tmp_path):
    store = fill(tmp_path / "store", seeds=1)
    bundle([store], tmp_path / "small")
    (tmp_path / "small" / "thesis.tex").write_text("mine")
    result = CliRunner().invoke(main, ["bundle", "--store", store.uri, "--output", str(tmp_path / "small")])
    assert result.exit_code == 2
    assert "is in use for something else: name a new folder with --output" in result.stderr
    assert (tmp_path / "small" / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize(
    "command",
    [
        ("query", "SELECT 1", "--format", "csv", "--output", "mine.py"),
        ("report", "demo", "--output", "mine.py"),
        ("checklist", "main", "--output", "mine.py"),
        ("claims", "--plan", "--output", "mine.py"),
    ],
    ids=" ".join,
)
def test_no_output_replaces_a_file_that_orch_does_not_write(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("print('months of work')\n")
    result = CliRunner().invoke(main, [*command, "--store", "bundled"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --output mine.py is there and ")
    assert result.stderr.endswith(": name another file, or delete it\n")
    assert Path("mine.py").read_text() == "print('months of work')\n"


def test_an_output_of_the_same_command_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        assert orch("query", f"SELECT {number} AS n", "--store", "bundled", "--output", "table.csv").exit_code == 0
        assert Path("table.csv").read_text() == f"n\n{number}\n"
