"""`orch cluster check`: the shipped files are right once edited, and everything wrong is named with its remedy."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from orch.cli import main
from orch.cluster.check import LauncherReport, check_launcher
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


SETUP = "bash ~/orch/cluster/setup.sh"
PINS = "uv venv --python 3.11; uv pip install ray[default]==2.60.0 torch==2.10.0"
WHEEL = "https://example.org/mamba_ssm-2.3.2+cu12torch{}cxx11abiTRUE-cp{}-cp{}-linux_x86_64.whl"

BROKEN: dict[str, tuple[Path, list[tuple[str, str]], str]] = {
    "a misspelt setting": (
        A100,
        [("idle_timeout_minutes", "idle_timeout_minuts")],
        "did you mean idle_timeout_minutes?",
    ),
    "a number in words": (
        A100,
        [("max_workers: 4  ", "max_workers: four  ")],
        "max_workers does not fit Ray's launcher",
    ),
    "a head that is no type": (
        A100,
        [("head_node_type: head", "head_node_type: boss")],
        "`head_node_type` must be one of",
    ),
    "an older Ray": (
        A100,
        [(SETUP, PINS.replace("2.60.0", "2.40.0"))],
        "would have Ray 2.40.0 and this environment has",
    ),
    "any Ray": (
        A100,
        [(SETUP, PINS.replace("==2.60.0", ""))],
        "the setup does not pin Ray: install ray[default,tune]==",
    ),
    "a nightly Ray": (
        A100,
        [(SETUP, PINS + " https://s3-us-west-2.amazonaws.com/ray-wheels/latest/ray-3.0.0.dev0-cp311-cp311-linux.whl")],
        "the setup installs a nightly Ray",
    ),
    "another Python": (
        A100,
        [(SETUP, PINS.replace("3.11", "3.10"))],
        "would have Python 3.10 and this environment has",
    ),
    "no Python": (A100, [(SETUP, PINS.replace("--python 3.11", ""))], "the setup does not name a Python"),
    "any torch": (A100, [(SETUP, PINS.replace("==2.10.0", ""))], "the setup does not pin torch"),
    "a torch too old": (
        A100,
        [(SETUP, PINS.replace("2.10.0", "2.4.1"))],
        "torch 2.4.1, and orch needs >=2.7: pin another",
    ),
    "a kernel for another torch": (
        A100,
        [(SETUP, f"{PINS} {WHEEL.format('2.8', '311', '311')}")],
        "the wheel of mamba_ssm is built for torch 2.8 and the cluster would have torch 2.10.0: make them equal",
    ),
    "a kernel for another Python": (
        A100,
        [(SETUP, f"{PINS} {WHEEL.format('2.10', '312', '312')}")],
        "the wheel of mamba_ssm is built for Python 3.12 and the cluster would have Python 3.11: make them equal",
    ),
    "a kernel to compile": (
        A100,
        [(SETUP, f"{PINS} mamba-ssm>=2.2")],
        "compiles mamba-ssm or causal-conv1d on every machine",
    ),
    "too many GPUs": (
        A100,
        [("GPU: 8", "GPU: 16")],
        "spot declares 16 GPUs and p4d.24xlarge has 8: correct its resources",
    ),
    "too many CPUs": (A100, [("CPU: 96", "CPU: 128")], "spot declares 128 CPUs and p4d.24xlarge has 96"),
    "a store on one machine": (
        A100,
        [("s3://orch-results/runs", "/home/ubuntu/runs")],
        "ORCH_STORE=/home/ubuntu/runs is a different folder on every machine: use s3://bucket/runs",
    ),
    "a relative store": (LOCAL, [("s3://orch-results/runs", "runs")], "ORCH_STORE=runs is a different folder"),
    "a temporary store": (SLURM, [("/shared/runs", "/tmp/runs")], "ORCH_STORE=/tmp/runs is a different folder"),
    "no store": (A100, [("ORCH_STORE=s3://orch-results/runs ", "")], "ORCH_STORE is not set: export it"),
    "workers without a role": (
        A100,
        [("    IamInstanceProfile: {Name: orch-worker}", "    # ")],
        "spot may not reach the store s3://orch-results/runs: set IamInstanceProfile",
    ),
    "no security group": (
        A100,
        [("SecurityGroupIds: [sg-0123456789abcdef0]", "EbsOptimized: true")],
        "head names no security group, and the one that Ray makes opens ssh to everybody",
    ),
    "a dashboard for everybody": (
        A100,
        [("--dashboard-host=127.0.0.1", "--dashboard-host=0.0.0.0")],
        "would listen on 0.0.0.0 and run whatever anybody sends: use --dashboard-host=127.0.0.1",
    ),
    "a Slurm dashboard for everybody": (
        SLURM,
        [("--head ", "--head --dashboard-host=0.0.0.0 ")],
        "the job server would listen on 0.0.0.0",
    ),
    "no authentication": (
        A100,
        [("RAY_AUTH_MODE=token", "")],
        "Ray's token authentication is off on the workers: start Ray there with RAY_AUTH_MODE=token",
    ),
    "no authentication under Slurm": (SLURM, [("RAY_AUTH_MODE=token", "")], "token authentication is off on the head"),
    "a token in the file": (
        A100,
        [("ulimit -n 65536; RAY_AUTH_MODE=token", "RAY_AUTH_MODE=token RAY_AUTH_TOKEN=sesame")],
        "a secret stands in the commands",
    ),
    "a token that stays here": (
        A100,
        [("  ~/.ray/auth_token: ~/.ray/auth_token\n", "")],
        "the machines do not get Ray's token",
    ),
    "a head that trains": (
        A100,
        [("resources: {CPU: 0} ", "resources: {CPU: 8} "), ("--num-cpus=0", "")],
        "the head would run trials and starve the driver: give it resources: {CPU: 0}",
    ),
    "a head that may vanish": (
        A100,
        [("InstanceType: m7i.2xlarge", "InstanceType: m7i.2xlarge\n      InstanceMarketOptions: {MarketType: spot}")],
        "the head is a spot instance, and the sweep ends with it",
    ),
    "no number of workers": (A100, [("max_workers: 4  ", "# ")], "max_workers is not set, and Ray takes 2"),
    "no workers": (A100, [("max_workers: 4", "max_workers: 0")], "max_workers 0 lets no worker start: raise it"),
    "too few workers": (
        A100,
        [("max_workers: 4  ", "max_workers: 2  ")],
        "spot wants up to 4 machines and max_workers is 2: make them agree",
    ),
    "no image": (
        A100,
        [("ImageId: ami-0123456789abcdef0", "EbsOptimized: true")],
        "spot names no image, and Ray takes",
    ),
    "an image that changes": (
        A100,
        [("ami-0123456789abcdef0", "latest_dlami")],
        "latest_dlami, which is not one fixed image",
    ),
    "a container that changes": (
        A100,
        [
            (
                "head_node_type: head",
                "docker: {image: 'rayproject/ray:latest', container_name: ray}\nhead_node_type: head",
            )
        ],
        "the image rayproject/ray:latest changes under its name: pin one by its version",
    ),
    "a nightly container": (
        A100,
        [
            (
                "head_node_type: head",
                "docker: {image: 'rayproject/ray:nightly-py311', container_name: ray}\nhead_node_type: head",
            )
        ],
        "the setup installs a nightly Ray",
    ),
    "an own key without its name": (
        A100,
        [("ssh_user: ubuntu", "ssh_user: ubuntu\n  ssh_private_key: ~/.ssh/cluster")],
        "head has no KeyName to go with ssh_private_key",
    ),
    "a key that is not there": (
        LOCAL,
        [("~/.ssh/cluster", "~/.ssh/lost")],
        "the ssh key ~/.ssh/lost does not exist here",
    ),
    "a folder that is not there": (
        A100,
        [("models: models", "models: modles")],
        "ships modles, which does not exist here",
    ),
    "the project left behind": (
        A100,
        [("  ~/orch/orchestrator: orchestrator\n", "")],
        "the project is not shipped to the machines (orchestrator): add its folders to file_mounts",
    ),
    "the whole folder": (A100, [("~/orch/orchestrator: orchestrator", "~/orch: .")], ".git"),
    "a head that starts no workers": (
        A100,
        [("--autoscaling-config=~/ray_bootstrap_config.yaml", "")],
        "the head would start no workers",
    ),
    "the newer autoscaler for ssh machines": (
        LOCAL,
        [("RAY_enable_autoscaler_v2=0", "")],
        "the workers would never join under Ray's newer autoscaler",
    ),
    "a machine twice": (
        LOCAL,
        [("10.0.0.2, 10.0.0.3", "10.0.0.1, 10.0.0.3")],
        "10.0.0.1 stands in head_ip and worker_ips",
    ),
    "machines left out": (
        LOCAL,
        [("cluster_name: orch-local", "cluster_name: orch-local\nmax_workers: 1")],
        "2 machines are listed and max_workers is 1: leave max_workers out",
    ),
    "no head": (LOCAL, [("head_ip: 10.0.0.1", "region: here")], "Please supply a `head_ip`"),
    "machines that everybody reaches": (
        GOOGLE,
        [("subnetworks/cluster", "subnetworks/default")],
        "head is in the default network, which opens ssh to everybody",
    ),
    "an image that changes on Google Cloud": (
        GOOGLE,
        [("images/common-cu128-v20260901", "images/family/common-cu128")],
        "head does not name one fixed image",
    ),
    "GPUs that would be moved": (
        GOOGLE,
        [("onHostMaintenance: TERMINATE", "onHostMaintenance: MIGRATE")],
        "on_demand has GPUs and cannot be moved while it runs",
    ),
    "GPUs that the machine of Google Cloud does not have": (
        GOOGLE,
        [("machineType: a2-highgpu-8g", "machineType: a2-highgpu-4g")],
        "on_demand declares 8 GPUs and a2-highgpu-4g has 4",
    ),
    "no way to Google Cloud's store": (
        GOOGLE,
        [("serviceAccounts:", "labels:")],
        "on_demand may not reach the store gs://orch-results/runs",
    ),
    "a machine that may only read from Google Cloud's store": (
        GOOGLE,
        [("devstorage.read_write", "devstorage.read_only")],
        "on_demand may not write to the store gs://orch-results/runs",
    ),
    "a zone of another region": (
        GOOGLE,
        [("availability_zone: us-central1-a", "availability_zone: us-east1-b")],
        "the zone us-east1-b is not in the region us-central1",
    ),
    "a region that is none": (
        A100,
        [("region: us-east-1", "region: us-east1")],
        "there is no AWS region us-east1: did you mean us-east-1?",
    ),
    "a head without Google's client": (
        GOOGLE,
        [("google-api-python-client google-auth cryptography\n\n", "six\n\n")],
        "install google-api-python-client in head_setup_commands",
    ),
    "a provider that is none": (A100, [("type: aws", "type: awz")], "Ray cannot use the file"),
    "Ray's own commands": (
        A100,
        [("setup_commands:\n  - bash", "initialization_commands:\n  - bash")],
        "the setup installs a nightly Ray",
    ),
}


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
