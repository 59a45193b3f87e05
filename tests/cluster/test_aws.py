"""`ray up` with the file of `orch cluster init aws` against a stand-in for EC2, and the workers that Ray starts."""

import dataclasses
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from orch.cluster.meter import count_reported
from tests.cluster.amazon import Amazon
from tests.cluster.hosts import ROOT
from tests.cluster.permissions import allows

moto_server = pytest.importorskip("moto.server", reason="needs moto[server] for an EC2 server")
if shutil.which("rsync") is None:
    pytest.skip("ray up needs rsync", allow_module_level=True)


@pytest.fixture(scope="module")
def amazon(tmp_path_factory) -> Iterator[Amazon]:
    """After `ray up`."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = Amazon(tmp_path_factory.mktemp("amazon"), f"http://{host}:{port}")
    found.ray("up")
    yield found
    server.stop()


@pytest.fixture(autouse=True, scope="module")
def calls() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The requests to AWS that are made in this process: those of Ray's autoscaler, as on the head."""
    made, call = [], BaseClient._make_api_call

    def record(self: Any, name: str, arguments: dict[str, Any]) -> Any:
        made.append((f"{self.meta.service_model.service_name}:{name}", arguments))
        return call(self, name, arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", record)
        yield made


@pytest.fixture
def autoscaler(amazon, monkeypatch) -> Any:
    """Ray's autoscaler as it would run on the head, with the settings that `ray up` brought there. It starts machines
    in this thread and leaves their setting up to nobody, for there is nothing to log in to."""
    from ray.autoscaler._private.autoscaler import StandardAutoscaler
    from ray.autoscaler._private.aws.utils import resource_cache
    from ray.autoscaler._private.load_metrics import LoadMetrics

    resource_cache.cache_clear()
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.setenv(name, amazon.environment[name])
    monkeypatch.setenv("HOME", str(amazon.head_home))
    scorer = "RAY_AUTOSCALER_UTILIZATION_SCORER"
    monkeypatch.setenv(scorer, head_environment(amazon)[scorer])

    def settings() -> dict[str, Any]:
        config = json.loads((amazon.head_home / "ray_bootstrap_config.yaml").read_text())
        config["provider"] |= {"disable_node_updaters": True, "foreground_node_launch": True}
        return config

    found = StandardAutoscaler(settings, LoadMetrics(), gcs_client=None, update_interval_s=0)
    yield found
    workers = [machine["InstanceId"] for machine in amazon.machines() if machine["tags"]["ray-node-type"] == "worker"]
    if workers:
        amazon.ec2.terminate_instances(InstanceIds=workers)


def head_environment(amazon: Amazon) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (amazon.head_home / "ray-start").read_text().splitlines() if "=" in line)


def work(autoscaler: Any, *demands: dict[str, int]) -> None:
    """Let the autoscaler start what it wants for these demands. The stand-in starts one machine where several are asked
    for, so it takes a few rounds."""
    autoscaler.load_metrics.set_resource_requests(list(demands))
    for _ in range(6):
        autoscaler.update()


def kinds(amazon: Amazon) -> Counter[str]:
    return Counter(machine["tags"]["ray-user-node-type"] for machine in amazon.machines())


def test_the_head_is_the_machine_that_the_file_describes(amazon):
    (head,) = amazon.machines()
    assert head["tags"]["ray-node-type"] == "head"
    assert head["tags"]["ray-node-status"] == "up-to-date"
    assert (head["InstanceType"], head["ImageId"]) == ("m7i.2xlarge", amazon.image)
    assert [group["GroupId"] for group in head["SecurityGroups"]] == [amazon.group]
    assert head["IamInstanceProfile"]["Arn"].endswith("/orch-us-east-1-head")
    assert "InstanceLifecycle" not in head


def test_ray_makes_no_security_group_beside_ours(amazon):
    groups = amazon.ec2.describe_security_groups()["SecurityGroups"]
    assert {group["GroupName"] for group in groups} == {"default", "orch"}


def test_the_head_gets_the_project_and_the_token_and_nothing_private(amazon):
    shipped = amazon.head_home / "orch"
    for name in ("orchestrator/cli/train.py", "cluster/setup.sh", "models/bilinear/network.py", "pyproject.toml"):
        assert (shipped / name).read_bytes() == (ROOT / name).read_bytes()
    assert (amazon.head_home / ".ray" / "auth_token").read_text() == amazon.token
    assert not {".git", "runs", "tests"} & {path.name for path in shipped.iterdir()}
    assert not list(shipped.rglob("__pycache__"))


def test_the_head_installs_the_pinned_set_and_starts_ray(amazon):
    environment, packages, kernels, stop, start = amazon.calls()
    assert environment == "uv venv --clear --python 3.11"
    assert "--editable . ray[default,tune]==2.60.0 torch==2.10.0" in packages
    assert kernels.count(".whl") == 2
    assert "--no-deps" in kernels
    assert stop == "ray stop"
    assert start.split() == [
        *("ray", "start", "--head", "--port=6379", "--num-cpus=0", "--dashboard-host=127.0.0.1"),
        "--autoscaling-config=~/ray_bootstrap_config.yaml",
    ]


def test_ray_starts_on_the_head_with_a_token_no_cpus_and_the_store(amazon):
    environment = head_environment(amazon)
    assert environment["RAY_AUTH_MODE"] == "token"
    assert environment["ORCH_STORE"] == "s3://orch-123456789012-us-east-1/runs"
    assert environment["OMP_NUM_THREADS"] == "1"
    assert json.loads(environment["RAY_OVERRIDE_RESOURCES"]) == {"CPU": 0}
    assert environment["RAY_enable_autoscaler_v2"] == "0"


def test_without_work_no_worker_is_started(amazon, autoscaler):
    work(autoscaler)
    assert kinds(amazon) == {"head": 1}


def test_spot_workers_are_started_for_the_work_there_is_and_no_more(amazon, autoscaler):
    work(autoscaler, *[{"CPU": 12, "GPU": 1}] * 12)
    assert kinds(amazon) == {"head": 1, "spot": 2}
    report = json.loads(json.dumps(dataclasses.asdict(autoscaler.summary())))
    assert count_reported(report)["spot"] == 2, "what --max-dollars counts"
    for worker in amazon.machines():
        if worker["tags"]["ray-node-type"] == "worker":
            assert (worker["InstanceType"], worker["ImageId"]) == ("p4d.24xlarge", amazon.image)
            assert worker["InstanceLifecycle"] == "spot"
            assert [group["GroupId"] for group in worker["SecurityGroups"]] == [amazon.group]
            assert worker["IamInstanceProfile"]["Arn"].endswith("/orch-us-east-1-worker")


def test_more_work_than_the_file_allows_machines_for_starts_as_many_as_it_allows(amazon, autoscaler):
    work(autoscaler, *[{"CPU": 12, "GPU": 1}] * 100)
    assert kinds(amazon) == {"head": 1, "spot": 4}


def test_on_demand_workers_are_started_while_there_are_no_spot_ones(amazon, autoscaler, monkeypatch):
    from moto.ec2.exceptions import EC2ClientError
    from moto.ec2.models.instances import InstanceBackend

    run_instances, refused = InstanceBackend.run_instances, []

    def no_spot(self: Any, *arguments: Any, **settings: Any) -> Any:
        if settings.get("instance_market_options"):
            refused.append(settings)
            raise EC2ClientError(
                "InsufficientInstanceCapacity", "We currently do not have sufficient p4d.24xlarge capacity"
            )
        return run_instances(self, *arguments, **settings)

    monkeypatch.setattr(InstanceBackend, "run_instances", no_spot)
    work(autoscaler, *[{"CPU": 12, "GPU": 1}] * 12)
    assert refused
    assert kinds(amazon) == {"head": 1, "on_demand": 2}
    assert all("InstanceLifecycle" not in machine for machine in amazon.machines())


def test_the_heads_role_allows_what_the_autoscaler_asks_for(amazon, autoscaler, calls):
    calls.clear()
    work(autoscaler, *[{"CPU": 12, "GPU": 1}] * 12)
    found = next(each for each in amazon.machines() if each["tags"]["ray-node-type"] == "worker")
    autoscaler.provider.set_node_tags(found["InstanceId"], {"ray-node-status": "up-to-date"})
    autoscaler.provider.terminate_node(found["InstanceId"])
    policy = amazon.iam.get_role_policy(RoleName="orch-us-east-1-head", PolicyName="orch")["PolicyDocument"]
    asked = [request for action, arguments in list(calls) for request in requests(amazon, action, arguments)]
    assert {action for action, _, _ in asked} == {
        *("ec2:DescribeInstances", "ec2:RunInstances", "ec2:CreateTags", "ec2:TerminateInstances", "iam:PassRole")
    }
    assert [request for request in asked if not allows(policy, request[0], request[1], **request[2])] == []


def requests(amazon: Amazon, action: str, arguments: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """What AWS would ask the head's policy for a call: the action on each resource, with the tags that it looks at."""
    place = "arn:aws:ec2:us-east-1:123456789012:"
    if action.startswith("iam:"):
        return
    if action == "ec2:RunInstances":
        tags = {tag["Key"]: tag["Value"] for tag in arguments["TagSpecifications"][0]["Tags"]}
        tagged = {"aws__RequestTag__ray_cluster_name": tags["ray-cluster-name"]}
        yield action, f"{place}instance/*", tagged
        yield "ec2:CreateTags", f"{place}instance/*", tagged | {"ec2__CreateAction": "RunInstances"}
        yield action, f"arn:aws:ec2:us-east-1::image/{arguments['ImageId']}", {}
        for group in arguments["SecurityGroupIds"]:
            yield action, f"{place}security-group/{group}", {}
        for resource in ("network-interface/*", "volume/*", f"subnet/{arguments['SubnetId']}"):
            yield action, f"{place}{resource}", {}
        yield action, f"{place}key-pair/{arguments['KeyName']}", {}
        if "InstanceMarketOptions" in arguments:
            yield action, f"{place}spot-instances-request/*", {}
        role = f"arn:aws:iam::123456789012:role/{arguments['IamInstanceProfile']['Name']}"
        yield "iam:PassRole", role, {"iam__PassedToService": "ec2.amazonaws.com"}
    elif ids := arguments.get("InstanceIds") or arguments.get("Resources"):
        for instance_id in ids:
            (found,) = amazon.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
            tags = {tag["Key"]: tag["Value"] for tag in found["Tags"]}
            yield (
                action,
                f"{place}instance/{instance_id}",
                {"aws__ResourceTag__ray_cluster_name": tags["ray-cluster-name"]},
            )
    else:
        yield action, "*", {}


def test_ray_down_ends_every_machine(amazon, autoscaler):
    work(autoscaler, {"GPU": 1})
    assert kinds(amazon) == {"head": 1, "spot": 1}
    amazon.ray("down")
    assert list(amazon.machines()) == []


def test_destroy_leaves_the_account_as_it_was(amazon):
    amazon.orch("destroy", str(amazon.file), "--yes")
    assert {group["GroupName"] for group in amazon.ec2.describe_security_groups()["SecurityGroups"]} == {"default"}
    assert amazon.iam.list_instance_profiles()["InstanceProfiles"] == []
    assert amazon.ec2.describe_key_pairs()["KeyPairs"] == []
