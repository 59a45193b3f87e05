"""`orch cluster check`: the shipped files are right once edited, and everything wrong is named with its remedy."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from orch.cli import main
from orch.cluster.check import LauncherReport, check_launcher
from tests.cluster.broken import BROKEN, SETUP
from tests.cluster.filled import A100, EDITS, GOOGLE, LOCAL, SLURM, replace
from tests.cluster.hosts import ROOT

Change = Callable[[str], str]


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    """A home with Ray's token and a key, in the project's folder, out of reach of any network."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)
    for name in (".ray/auth_token", ".ssh/cluster"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("secret")

    def refuse(*arguments: object) -> None:
        pytest.fail("the check reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def checked(folder: Path, file: Path, *changes: tuple[str, str]) -> LauncherReport:
    """Check a shipped file whose placeholders are filled in and that has the given changes."""
    text = replace(file.read_text(), EDITS[file])
    for change in changes:
        text = replace(text, dict([change]))
    path = folder / file.name
    path.write_text(text)
    return check_launcher(path)


def orch(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["cluster", "check", *arguments])


@pytest.mark.parametrize("file", EDITS, ids=lambda file: file.name)
def test_the_shipped_files_are_right_once_they_are_edited(file, tmp_path):
    report = checked(tmp_path, file)
    assert (report.errors, report.warnings) == ((), ())


@pytest.mark.parametrize("file", [A100, GOOGLE, LOCAL], ids=lambda file: file.name)
def test_packs_that_share_a_gpu_of_a_worker_run_at_the_same_time(file):
    stop, share, *start = yaml.safe_load(file.read_text())["worker_start_ray_commands"]
    assert (stop, share) == ("ray stop", "bash ~/orch/cluster/mps.sh")
    assert start


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (A100, ["ImageId", "SecurityGroupIds", "IamInstanceProfile", "IamInstanceProfile", "ORCH_STORE"]),
        (GOOGLE, ["project_id", "subnetwork", "sourceImage", "email", "ORCH_STORE"]),
        (LOCAL, ["head_ip", "worker_ips", "ssh_user", "ssh_private_key", "ORCH_STORE"]),
        (SLURM, ["partition", "ORCH_STORE"]),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_every_edit_not_made_yet_is_named_and_nothing_else(file, names):
    result = orch(str(file))
    assert result.exit_code == 2
    assert [line.split()[1] for line in result.stderr.splitlines()] == names
    assert all(" is still " in line and ": put " in line for line in result.stderr.splitlines())
    assert result.stdout == ""


def test_the_command_says_what_was_checked_and_what_it_costs(tmp_path):
    path = tmp_path / "a100.yaml"
    path.write_text(replace(A100.read_text(), EDITS[A100]))
    result = orch(str(path))
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "is right: up to 4 workers with 8 GPUs each, $0.40 an hour idle and $65.60 to $88.23" in result.stdout
    assert result.stdout.endswith("; 0 warnings\n")


def test_warnings_alone_do_not_fail(tmp_path):
    path = tmp_path / "a100.yaml"
    path.write_text(replace(A100.read_text(), EDITS[A100]).replace("min_workers: 0", "min_workers: 1", 1))
    result = orch(str(path))
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(
        "warning: 1 of spot are paid for even when there is nothing to do: use min_workers 0"
    )
    assert result.stdout.endswith("; 1 warning\n")


@pytest.mark.parametrize(("file", "changes", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_refused_with_the_reason_and_the_remedy(file, changes, message, tmp_path, capfd):
    report = checked(tmp_path, file, *changes)
    assert any(message in text for text in report.errors), report.errors
    assert all(": " in text or text.endswith("?") for text in report.errors)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("InstanceMarketOptions: {MarketType: spot}", ""), ("  spot:  ", "  first:  ")], None),
        ([("node_config: *worker\n", "node_config: {<<: *worker, InstanceMarketOptions: {MarketType: spot}}\n")],
         "all workers are spot, so the sweep waits while there are none: add an on-demand type as fallback"),
        ([("RAY_enable_autoscaler_v2=0", "")], "while no spot machines are available, Ray keeps asking for them"),
        ([("  spot:  ", "  cheap:  ")], "cheap is spot and cluster/spot_first.py goes by the name"),
        ([("min_workers: 0", "min_workers: 2")], "2 of on_demand are paid for even when there is nothing to do"),
        ([("p4d.24xlarge", "p9.metal")], "p9.metal is not in the table of cluster/prices.py"),
        ([("OMP_NUM_THREADS=1 ", "")], "OMP_NUM_THREADS=1 is not set on the workers"),
        ([("p4d.24xlarge", "m7i.8xlarge"), ("CPU: 96, GPU: 8", "CPU: 32")], "no type of worker has a GPU"),
    ],
)  # fmt: skip
def test_a_file_that_works_but_perhaps_not_as_intended_gets_a_warning(changes, message, tmp_path):
    report = checked(tmp_path, A100, *changes)
    assert report.errors == ()
    assert any(message in text for text in report.warnings) if message else report.warnings == ()


def test_everything_wrong_is_reported_at_once(tmp_path):
    changes = [
        ("s3://orch-results/runs", "/home/ubuntu/runs"),
        ("GPU: 8", "GPU: 4"),
        ("--dashboard-host=127.0.0.1", "--dashboard-host=0.0.0.0"),
        ("idle_timeout_minutes", "idle_minutes"),
        ("sg-0123456789abcdef0", "sg-EDIT-ME"),
    ]
    errors = checked(tmp_path, A100, *changes).errors
    for part in (
        "/home/ubuntu/runs",
        "spot declares 4",
        "on_demand declares 4",
        "0.0.0.0",
        "idle_minutes",
        "sg-EDIT-ME",
    ):
        assert any(part in text for text in errors), (part, errors)
    assert len(errors) == 6


def test_a_folder_that_the_setup_mounts_can_be_the_store(tmp_path):
    mount = "sudo mount -t efs fs-1234:/ /shared"
    report = checked(tmp_path, A100, ("s3://orch-results/runs", "/shared/runs"), (SETUP, f"{SETUP}\n  - {mount}"))
    assert report.errors == ()


def test_a_container_of_rays_pins_ray_and_python(tmp_path):
    docker = "docker: {image: 'rayproject/ray:2.60.0-py311-cu128', container_name: ray}\nhead_node_type: head"
    report = checked(tmp_path, A100, ("head_node_type: head", docker), (SETUP, "pip install torch==2.10.0"))
    assert report.errors == ()


def test_a_missing_token_says_how_to_make_one(tmp_path):
    (tmp_path / ".ray" / "auth_token").unlink()
    assert checked(tmp_path, A100).errors == (
        "file_mounts ships ~/.ray/auth_token, which does not exist here: run ray get-auth-token --generate",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [("provider: [", "is not YAML"), ("", "has no settings"), ("provider: aws", "Ray cannot use the file")],
)
def test_a_file_that_is_no_launcher_file_gets_a_sentence(content, message, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(content)
    result = orch(str(path))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_script_that_is_not_for_slurm_gets_a_sentence():
    result = orch("cluster/setup.sh")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: cluster/setup.sh is no launcher file: a Slurm script has lines that begin")


def test_a_missing_file_gets_a_sentence():
    result = orch("cluster/none.yaml")
    assert result.exit_code == 2
    assert "cluster/none.yaml cannot be read" in result.stderr
