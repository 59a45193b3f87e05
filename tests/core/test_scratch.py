"""Temporary folders, and what is left of them when their process is killed."""

import signal
import subprocess
import sys

import pytest

from orch.core import scratch
from orch.core.scratch import remove_leftovers, scratch_folder

HOLD = "import sys, time\nfrom orch.core.scratch import scratch_folder\n"
HOLD += "with scratch_folder('test', sys.argv[1]) as folder:\n"
HOLD += "    (folder / 'secret').write_text('x')\n    print(folder, flush=True)\n    time.sleep(600)\n"


@pytest.fixture
def other(tmp_path):
    """A process that holds a folder in `tmp_path`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_folder_is_private_and_gone_afterwards(tmp_path):
    with scratch_folder("test", str(tmp_path)) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("x")
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_live_process_stays_and_that_of_a_killed_one_goes_with_the_next(tmp_path, other):
    (folder,) = tmp_path.iterdir()
    with scratch_folder("test", str(tmp_path)):
        assert folder.exists()
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert folder.exists()
    with scratch_folder("test", str(tmp_path)) as own:
        assert list(tmp_path.iterdir()) == [own]


def test_nothing_but_folders_of_this_kind_is_removed(tmp_path):
    names = ["orch-other", "work", f"{scratch._PREFIX}file"]
    (tmp_path / names[0]).mkdir()
    (tmp_path / names[1]).mkdir()
    (tmp_path / names[2]).write_text("x")
    (tmp_path / "target").mkdir()
    (tmp_path / f"{scratch._PREFIX}link").symlink_to(tmp_path / "target")
    before = set(tmp_path.iterdir())
    remove_leftovers(str(tmp_path))
    assert set(tmp_path.iterdir()) == before


def test_a_folder_for_sockets_has_a_short_path_wherever_temporary_folders_are(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path / "a-long-name-of-a-folder"))
    with scratch_folder("ray", short=True) as folder:
        assert len(str(folder)) < 35
