"""Reading a launcher file, and the cost of its machines."""

import subprocess
from dataclasses import replace as changed

import pytest

from orch.cluster.launcher import Launcher, read_launcher
from orch.cluster.prices import INSTANCES, gpus_per_worker, hourly_cost
from orch.cluster.versions import find_versions
from tests.cluster.filled import A100, EDITS, LOCAL, SLURM, replace
from tests.cluster.hosts import ROOT


@pytest.fixture
def a100(tmp_path, monkeypatch) -> Launcher:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "a100.yaml"
    path.write_text(replace(A100.read_text(), EDITS[A100]))
    return read_launcher(path)


def test_a_launcher_file_is_read_as_data(a100):
    assert (a100.provider, a100.max_workers) == ("aws", 4)
    assert a100.store == "s3://orch-results/runs"
    assert (a100.ssh_private_key, a100.head_address) == (None, None)
    assert [(node.name, node.instance_type, node.num_gpus, node.spot) for node in a100.workers] == [
        ("spot", "p4d.24xlarge", 8, True),
        ("on_demand", "p4d.24xlarge", 8, False),
    ]
    assert a100.head is not None
    assert (a100.head.instance_type, a100.head.num_cpus) == ("m7i.2xlarge", 0)


def test_spot_workers_are_preferred(a100):
    assert a100.preferred_worker is not None
    assert a100.preferred_worker.name == "spot"


def test_the_address_and_the_key_of_machines_reached_by_ssh_are_read(tmp_path):
    path = tmp_path / "local.yaml"
    path.write_text(replace(LOCAL.read_text(), EDITS[LOCAL]))
    local = read_launcher(path)
    assert (local.provider, local.head_address, local.worker_addresses) == (
        "local",
        "10.0.0.1",
        ("10.0.0.2", "10.0.0.3"),
    )
    assert local.ssh_private_key == "~/.ssh/cluster"
    assert hourly_cost(local, 2) is None


def test_a_slurm_script_is_read_as_data(tmp_path):
    path = tmp_path / "slurm.sh"
    path.write_text(replace(SLURM.read_text(), EDITS[SLURM]))
    slurm = read_launcher(path)
    assert (slurm.provider, slurm.max_workers, slurm.store) == ("slurm", 2, "/shared/runs")


def test_the_versions_come_from_the_script_that_the_machines_run(a100):
    assert (a100.versions.python, a100.versions.ray, a100.versions.torch) == ("3.11", "2.60.0", "2.10.0")
    assert [(wheel.package, wheel.cuda, wheel.torch, wheel.python) for wheel in a100.versions.wheels] == [
        ("mamba_ssm", "12", "2.10", "3.11"),
        ("causal_conv1d", "12", "2.10", "3.11"),
    ]
    assert not a100.versions.kernels_from_source


@pytest.mark.parametrize(
    "command",
    ["pip install mamba-ssm", "pip install 'causal-conv1d>=1.4'", "pip install --no-build-isolation mamba_ssm"],
)
def test_kernels_that_would_be_compiled_are_noticed(command):
    assert find_versions(command, None).kernels_from_source


@pytest.mark.parametrize("file", [A100, LOCAL], ids=lambda file: file.name)
def test_every_package_is_shipped_and_nothing_private(file, monkeypatch):
    monkeypatch.chdir(ROOT)
    mounts = read_launcher(file).file_mounts
    linked = {path.resolve().relative_to(ROOT) for path in (ROOT / "orchestrator").iterdir() if path.is_symlink()}
    assert linked
    for folder in (*map(str, linked), "orchestrator", "src"):
        assert mounts[f"~/orch/{folder}"] == folder
    assert not {".", ".git", ".venv", "runs"} & set(mounts.values())


@pytest.mark.parametrize("script", ["setup.sh", "slurm.sh"])
def test_the_scripts_are_valid_and_runnable(script):
    path = ROOT / "cluster" / script
    subprocess.run(["bash", "-n", path], check=True)
    assert path.stat().st_mode & 0o111


def test_an_hour_costs_the_head_and_its_workers_on_spot_or_on_demand(a100):
    head, worker = INSTANCES["m7i.2xlarge"], INSTANCES["p4d.24xlarge"]
    cost = hourly_cost(a100, 3)
    assert cost is not None
    assert worker.spot is not None
    assert cost.low == pytest.approx(head.on_demand + 3 * worker.spot)
    assert cost.high == pytest.approx(head.on_demand + 3 * worker.on_demand)
    assert gpus_per_worker(a100) == 8


def test_spot_without_a_known_price_is_taken_for_on_demand(a100):
    workers = tuple(changed(worker, instance_type="p4de.24xlarge") for worker in a100.workers)
    cost = hourly_cost(changed(a100, workers=workers), 1)
    assert cost is not None
    assert cost.low == cost.high == pytest.approx(0.4032 + 27.44705)


def test_machines_of_unknown_price_have_no_cost(a100):
    workers = (changed(a100.workers[0], instance_type="p9.metal"),)
    assert hourly_cost(changed(a100, workers=workers), 1) is None


def test_gpus_that_the_file_leaves_to_ray_are_those_of_the_instance(a100):
    workers = tuple(changed(worker, num_gpus=None) for worker in a100.workers)
    assert gpus_per_worker(changed(a100, workers=workers)) == 8


def test_spot_costs_less_than_on_demand():
    assert all(instance.spot < instance.on_demand for instance in INSTANCES.values() if instance.spot is not None)
