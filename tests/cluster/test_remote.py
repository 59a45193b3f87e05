"""`--on FILE` without a cluster: the command that would be sent, errors found before, and the estimated cost."""

import doctest
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace as changed
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orch.cli import main
from orch.cli._on import given_options, given_store
from orch.cli.sweep import sweep
from orch.cluster import bill
from orch.cluster.bill import device_of
from orch.cluster.head import Head, HeadUnreachable, find_head
from orch.cluster.launcher import Launcher, read_launcher
from orch.cluster.on_cluster import job_command
from orch.cluster.prices import INSTANCES
from orch.cluster.shipment import pack, place
from orch.cluster.tunnel import tunnel
from orch.core.errors import InvalidSettings
from orch.running.progress import duration
from orch.store import Store
from orch.usercode import UserCode
from tests.cluster.amazon import Amazon
from tests.cluster.filled import A100, EDITS, LOCAL, SLURM, replace
from tests.cluster.hosts import ROOT

HEAD = Head(address="10.0.0.1", user="ada")


@pytest.fixture(autouse=True)
def _in_the_projects_folder(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def a100(tmp_path) -> Launcher:
    return filled(A100, tmp_path)


@pytest.fixture
def local(tmp_path) -> Launcher:
    return filled(LOCAL, tmp_path)


def filled(file: Path, folder: Path) -> Launcher:
    path = folder / file.name
    path.write_text(replace(file.read_text(), EDITS[file]))
    return read_launcher(path)


def orch(*words: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == expect, result.output
    return result


def test_a_job_has_the_options_that_were_set():
    words = "main --where model=rnn --where modulus=2 --scale smoke --yes --max-hours 2 --store s3://bucket/runs"
    context = sweep.make_context("sweep", [*words.split(), "--on", "cluster/a100.yaml", "--detach"])
    given = ["--scale", "smoke", "--where", "model=rnn", "--where", "modulus=2", "--yes", "--max-hours", "2.0"]
    assert given_options(context) == given
    assert given_store(context) == "s3://bucket/runs"


def test_the_store_in_the_environment_is_not_used_on_a_cluster(monkeypatch, a100):
    monkeypatch.setenv("ORCH_STORE", "runs")
    context = sweep.make_context("sweep", ["main"])
    assert given_store(context) is None
    assert job_command(a100, ["sweep", "main"], None) == "orch sweep main --store s3://orch-results/runs"


def test_a_given_store_overrides_the_one_in_the_file(a100, local):
    assert job_command(a100, ["resume"], "s3://other/runs") == "orch resume --store s3://other/runs"
    assert job_command(local, ["resume"], "/shared/runs") == "orch resume --store /shared/runs"


@pytest.mark.parametrize("store", ["runs", "~/runs", "/home/ada/runs"])
def test_a_store_that_the_machines_cannot_all_reach_is_refused(a100, store):
    with pytest.raises(InvalidSettings, match=f"--store {store} is a different folder on every machine: use s3://"):
        job_command(a100, ["sweep", "main"], store)


@pytest.mark.parametrize(
    ("words", "store"),
    [
        (["resume"], "s3://key:hunter2@bucket/runs"),
        (["resume", "--on-finish", "curl -H 'Authorization: Bearer hunter2'"], None),
    ],
)
def test_a_command_with_a_credential_is_refused_without_showing_it(a100, words, store):
    with pytest.raises(InvalidSettings, match="a credential stands in it") as refusal:
        job_command(a100, words, store)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("store", ["s3://key:hunter2@bucket/runs", "$HOME/runs"])
def test_a_store_with_a_variable_or_a_credential_is_left_to_the_machines_environment(a100, store):
    assert job_command(changed(a100, store=store), ["resume"], None) == "orch resume"


@pytest.mark.parametrize("words", [["sweep", "frozen-parity"], ["resume"], ["status"], ["failures"], ["logs"]])
def test_a_file_that_is_not_ready_is_refused_with_everything_wrong_at_once(words):
    errors = orch(*words, "--on", str(A100), expect=2).stderr
    assert "ImageId is still ami-EDIT-ME" in errors
    assert "ORCH_STORE is still s3://EDIT-ME/runs" in errors


def test_invalid_sweeps_and_conditions_are_reported_before_the_file_is_read():
    assert "did you mean 'main'" in orch("sweep", "mian", "--on", "nowhere.yaml", expect=2).stderr
    assert "modulus 'two'" in orch("sweep", "main", "--where", "modulus=two", "--on", "x.yaml", expect=2).stderr


def test_detach_needs_a_cluster_and_progress_lines():
    assert "add --on FILE" in orch("sweep", "main", "--detach", expect=2).stderr
    assert "--quiet suppresses" in orch("resume", "--detach", "--quiet", "--on", "x.yaml", expect=2).stderr


def test_a_slurm_script_is_for_sbatch(tmp_path):
    path = filled(SLURM, tmp_path).path
    assert f"start it with sbatch {path}" in orch("status", "--on", str(path), expect=2).stderr


def test_a_job_gets_the_project_as_it_is_and_the_sweep_file_with_those_beside_it(tmp_path):
    code = UserCode.read(ROOT / "examples" / "gated_sweep.py")
    pack(tmp_path, [code])
    for path in ("cli/train.py", "models/rnn/network.py", "analysis/published/main.csv", "cluster/setup.sh"):
        assert (tmp_path / "orch" / path).read_bytes() == (ROOT / "src" / "orch" / path).read_bytes()
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert not list(tmp_path.rglob("__pycache__"))
    assert UserCode.read(tmp_path / place(code)) == code


def test_ssh_takes_the_key_the_user_and_the_way_of_the_file():
    words = changed(HEAD, key="~/.ssh/cluster", proxy_command="ssh -W %h:%p gate").ssh("-T", command="true")
    assert words[-2:] == ["ada@10.0.0.1", "true"]
    assert words[words.index("-i") + 1] == os.path.expanduser("~/.ssh/cluster")
    assert "ProxyCommand=ssh -W %h:%p gate" in words


@pytest.fixture
def amazon(tmp_path, monkeypatch) -> Iterator[Amazon]:
    """An account for this process."""
    moto_server = pytest.importorskip("moto.server", reason="needs moto[server] for an EC2 server")
    from ray.autoscaler._private.aws.utils import resource_cache

    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = Amazon(tmp_path, f"http://{host}:{port}")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    resource_cache.cache_clear()
    yield found
    server.stop()


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # Ray reads the launcher file and leaves it open
def test_the_head_of_a_cloud_is_found_by_its_provider_with_the_key_that_ray_made(amazon):
    launcher = read_launcher(amazon.file)
    with pytest.raises(HeadUnreachable, match=f"start it with ray up {amazon.file}"):
        find_head(launcher)
    tags = {"ray-cluster-name": "orch", "ray-node-type": "head", "ray-node-status": "up-to-date"}
    tagged = {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
    amazon.ec2.run_instances(
        ImageId=amazon.image, InstanceType="m7i.2xlarge", MinCount=1, MaxCount=1, TagSpecifications=[tagged]
    )
    (machine,) = amazon.machines()
    head = find_head(launcher)
    assert (head.address, head.user) == (machine["PublicIpAddress"], "ubuntu")
    assert head.key is not None
    key = amazon.home / head.key.removeprefix("~/")  # ssh is given the whole path
    assert key.is_relative_to(amazon.home / ".ssh")
    assert "PRIVATE KEY" in key.read_text()


def test_commands_on_the_head_have_the_environment_of_a_login_and_say_nothing_else(tmp_path):
    guarded = "case $- in *i*) ;; *) return ;; esac\n"  # as on Ubuntu: only for shells that people use
    (tmp_path / ".bashrc").write_text(f"{guarded}export ORCH_STORE='the store'\n")
    words = ["sh", "-c", 'echo "$ORCH_STORE: $1"; echo problem >&2; exit 3', "sh", "it's"]
    command = ["bash", "-c", HEAD.shell(words, terminal=False)]
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "the store: it's\n", "problem\n")


def test_commands_on_a_head_with_a_container_run_inside_it():
    command = changed(HEAD, container="ray").shell(["orch", "status"], terminal=True)
    assert command.startswith("docker exec -it ray bash -c ")
    assert "orch status" in command


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs openssh-client")
def test_a_head_that_does_not_answer_is_named():
    nowhere = changed(HEAD, proxy_command="false")
    with pytest.raises(HeadUnreachable, match=r"the head at 10\.0\.0\.1 cannot be reached"), tunnel(nowhere, 8265):
        pass


def test_a_plan_for_a_cluster_has_hours_and_money_for_one_worker_and_for_all(tmp_path):
    words = ["plan", "all", "--scale", "paper", "--store", str(tmp_path / "runs"), "--on", str(A100)]
    found = json.loads(orch(*words, "--json").output)
    assert (found["device"], found["devices_per_worker"]) == ("A100 40 GB", 8)
    one, four = found["bills"]
    assert (one["num_workers"], four["num_workers"]) == (1, 4)
    assert one["hours"] == pytest.approx(4 * four["hours"])
    assert one["hours"] * 8 > found["hours"] * 1.05  # trials that wait for others cost time too
    worker, head = INSTANCES["p4d.24xlarge"], INSTANCES["m7i.2xlarge"]
    assert worker.spot is not None
    assert four["low"] == pytest.approx(four["hours"] * (head.on_demand + 4 * worker.spot))
    assert four["high"] == pytest.approx(four["hours"] * (head.on_demand + 4 * worker.on_demand))
    text = orch(*words).output
    assert f"on 4 workers (32 x A100 40 GB): about {duration(3600 * four['hours'])}, ${four['low']:,.2f} to" in text
    assert f"assumed: {found['assumptions']}" in text


def test_a_launcher_file_that_comes_with_orch_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = read_launcher("cluster/a100.yaml")
    assert found == read_launcher("a100.yaml")
    assert found.path.samefile(A100)
    with pytest.raises(InvalidSettings, match=r"absent.yaml cannot be read .* come with orch are in .*cluster"):
        read_launcher("cluster/absent.yaml")


def test_however_many_workers_there_are_the_longest_trial_takes_its_time(tmp_path):
    words = ["plan", "demo", "--where", "model=lstm", "--store", str(tmp_path / "runs"), "--on", str(A100), "--json"]
    one, four = json.loads(orch(*words).output)["bills"]
    assert one["hours"] == four["hours"] > 0


def test_a_plan_for_machines_of_ones_own_says_that_they_are_not_known(tmp_path):
    output = orch("plan", "demo", "--store", str(tmp_path / "runs"), "--on", str(LOCAL)).output
    assert "does not name its machines" in output
    assert "$" not in output


def test_a_plan_uses_what_was_measured_on_such_a_gpu(tmp_path, a100):
    store = Store.open(tmp_path / "runs")
    for number, name in enumerate(["NVIDIA L4", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB"]):
        store.put_json(f"rates/{number}.json", {"device": name, "host": "worker", "ratios": {}})
    assert device_of(a100, store) == "NVIDIA A100-SXM4-40GB"


def test_gpus_are_known_by_the_names_they_give_themselves():
    assert doctest.testmod(bill).failed == 0
