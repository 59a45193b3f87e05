"""`orch slurm`: its script and what it refuses, without Slurm."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orch.running.requests import Request
from orch.store import Store
from tests.cluster.hosts import ROOT
from tests.command_line import orch

SWEEP = ("frozen-parity", "--scale", "smoke")
PLACE = "/home/ada/runs"  # is not made: the script is only shown


def test_the_script_asks_for_what_was_given_and_passes_the_rest_to_orch_sweep():
    asked = ("--gpus", "a100:4", "--gpus-per-trial", "0.5", "--time", "2-00", "--partition", "gpu", "--account", "me")
    more = ("--tasks", "3", "--sbatch=--mem=32G", "--pack", "4", "--where", "model=block_diagonal")
    script = orch("slurm", *SWEEP, *asked, *more, "--store", PLACE, "--dry-run").stdout
    directives = [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH")]
    wanted = {"--array=1-3", "--gpus-per-node=a100:4", "--cpus-per-task=8", "--time=2-00", "--partition=gpu"}
    assert wanted | {"--account=me", "--mem=32G", "--requeue", "--signal=B:TERM@120"} <= set(directives)
    (command,) = [line for line in script.splitlines() if line.startswith("orch=(")]
    words = shlex.split(command.removeprefix("orch=(").removesuffix(")"))
    sweep = ["sweep", "frozen-parity", "--scale", "smoke", "--where", "model=block_diagonal"]
    assert words[:3] == [sys.executable, "-m", "orch"]
    assert words[3:] == [*sweep, "--pack", "4", "--gpus-per-trial", "0.5", "--store", PLACE]
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_an_array_has_no_more_tasks_than_trials():
    script = orch("slurm", *SWEEP, "--tasks", "100", "--store", PLACE, "--dry-run").stdout
    assert "--array=1-8\n" in script


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--tasks 0", "--tasks 0 is not enough"),
        ("--gpus many", "--gpus many is neither a number nor a type and a number"),
        ("--time soon", "--time soon is not a time of Slurm"),
        ("--time 5", "--time 5 is too short"),
        ("--partition a;b", "--partition 'a;b' is not a name"),
        ("--sbatch mem=1G", "--sbatch 'mem=1G' is not an option of sbatch"),
        ("--sbatch=--array=1-2", "--sbatch --array=1-2 is decided by orch slurm"),
        ("--sbatch=--arr=1-2", "--sbatch --arr=1-2 is decided by orch slurm"),
        ("--sbatch=-N2", "--sbatch -N2 is decided by orch slurm"),
        ("--device cuda", "--device cuda needs GPUs"),
        ("--store /tmp/runs", "is a different folder on every node"),
        ("--where model=lstm", "no trial matches frozen-parity at smoke scale where model=lstm"),
    ],
)
def test_what_slurm_could_not_do_is_refused_before_anything_is_submitted(options, said):
    assert said in orch("slurm", *SWEEP, "--store", PLACE, *options.split(), expect=2).stderr


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for sbatch, which keeps the script and answers as sbatch does, or refuses as it does."""
    program = tmp_path / "sbatch"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/script\necho '4711;cluster'\n")
    program.chmod(0o755)
    return program


def test_a_sweep_of_the_users_own_is_recorded_and_submitted_by_its_name(sbatch, tmp_path, monkeypatch):
    monkeypatch.setattr("orch.cluster.slurm_array.shared_place", str)
    store = tmp_path / "runs"
    file = ROOT / "examples" / "gated_sweep.py"
    said = orch("slurm", str(file), "--scale", "smoke", "--store", str(store)).stdout
    assert said.startswith("submitted array 4711: ")
    script = (tmp_path / "script").read_text()
    assert "sweep gated_sweep --scale smoke" in script or "sweep gated-sweep --scale smoke" in script
    (recorded,) = Store.open(store).list_json("sweeps").values()
    assert recorded["code"]


def test_what_slurm_says_is_passed_on(sbatch, tmp_path, monkeypatch):
    monkeypatch.setattr("orch.cluster.slurm_array.shared_place", str)
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n")
    refused = orch("slurm", *SWEEP, "--partition", "gpu", "--store", str(tmp_path / "runs"), expect=2).stderr
    assert "Slurm refused the array (invalid partition specified: gpu)" in refused


def test_the_page_shows_as_many_trials_as_there_are():
    left = sum(planned.left for planned in Request.read(["all"], "paper", ()).plan(None).trials)
    assert f"{left:,} trials to do on 16 tasks" in (ROOT / "docs" / "slurm.md").read_text()
