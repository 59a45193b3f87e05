"""`orch cluster init aws` against a stand-in for AWS, in this process."""

import stat

import pytest
import yaml

from orch.cluster.amazon import network, quotas
from orch.cluster.amazon.account import TAG
from orch.cluster.check import check_launcher
from tests.cluster.aws_account import BUCKET, REGION, client, denied, done, everything, images, init, orch, policy

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("aws_account")]


def test_one_command_makes_everything_and_a_file_that_passes_the_check(tmp_path):
    file = tmp_path / "aws.yaml"
    lines = done(init(file))
    assert lines[-1] == f"next: ray up {file}, then orch sweep all --on {file}"
    report = check_launcher(file)
    assert (report.errors, report.warnings) == ((), ())
    config = yaml.safe_load(file.read_text())
    assert report.launcher.store == f"s3://{BUCKET}/runs"
    assert config["auth"]["ssh_private_key"] == f"~/.ssh/orch-{REGION}.pem"
    (group,) = client("ec2").describe_security_groups(GroupNames=["orch"])["SecurityGroups"]
    for node in (report.launcher.head, *report.launcher.workers):
        assert node is not None
        assert node.security_groups == (group["GroupId"],)
        assert node.key_name == f"orch-{REGION}"
    assert [node.name for node in report.launcher.workers] == ["spot", "on_demand"]


def test_the_bucket_is_private_encrypted_and_without_versions(tmp_path):
    done(init(tmp_path / "aws.yaml"))
    s3 = client("s3")
    assert all(s3.get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"].values())
    (rule,) = s3.get_bucket_encryption(Bucket=BUCKET)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert "Status" not in s3.get_bucket_versioning(Bucket=BUCKET)


def test_ssh_is_let_in_from_the_given_address_only_and_everything_within_the_group(tmp_path):
    done(init(tmp_path / "aws.yaml"))
    (group,) = client("ec2").describe_security_groups(GroupNames=["orch"])["SecurityGroups"]
    within, ssh = sorted(group["IpPermissions"], key=lambda rule: rule["IpProtocol"])
    assert within["IpProtocol"] == "-1"
    assert [each["GroupId"] for each in within["UserIdGroupPairs"]] == [group["GroupId"]]
    assert within["IpRanges"] == []
    assert (ssh["FromPort"], ssh["ToPort"]) == (22, 22)
    assert [each["CidrIp"] for each in ssh["IpRanges"]] == ["203.0.113.7/32"]


def test_the_private_key_is_readable_by_its_owner_only_and_fits_the_key_pair(tmp_path):
    done(init(tmp_path / "aws.yaml"))
    path = tmp_path / ".ssh" / f"orch-{REGION}.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    (pair,) = client("ec2").describe_key_pairs(IncludePublicKey=True)["KeyPairs"]
    assert pair["KeyName"] == f"orch-{REGION}"
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name]


def test_everything_that_is_made_is_tagged(tmp_path):
    done(init(tmp_path / "aws.yaml"))
    iam, name = client("iam"), f"orch-{REGION}-head"
    tagged = [
        client("s3").get_bucket_tagging(Bucket=BUCKET)["TagSet"],
        client("ec2").describe_security_groups(GroupNames=["orch"])["SecurityGroups"][0]["Tags"],
        client("ec2").describe_key_pairs()["KeyPairs"][0]["Tags"],
        iam.get_role(RoleName=name)["Role"]["Tags"],
        iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Tags"],
    ]
    assert all(tags == [{"Key": TAG, "Value": "orch"}] for tags in tagged)


def test_a_second_run_finds_everything_and_changes_nothing(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    before, held, text = everything(), policy("head"), file.read_text()
    lines = done(init(file))
    assert all(line.startswith("found ") for line in lines[:-2]), lines
    assert (everything(), policy("head"), file.read_text()) == (before, held, text)


def test_a_dry_run_changes_nothing_at_all(tmp_path):
    before = everything()
    lines = done(init(tmp_path / "aws.yaml", "--dry-run"))
    assert everything() == before
    assert list(tmp_path.iterdir()) == []
    assert "would make bucket" in lines[0]
    assert lines[-1] == f"nothing was changed: {len(lines) - 1} changes would be made"
    done_since = [line for line in done(init(tmp_path / "aws.yaml")) if line.startswith(("made ", "changed "))]
    infinitive = {"made": "would make", "changed": "would change"}
    assert lines[:-1] == [infinitive[line.split()[0]] + line[len(line.split()[0]) :] for line in done_since]


@pytest.mark.slow
@pytest.mark.parametrize(
    "operation",
    [
        *("CreateBucket", "PutBucketTagging", "PutPublicAccessBlock", "CreateSecurityGroup"),
        *("AuthorizeSecurityGroupIngress", "ImportKeyPair", "CreateRole", "PutRolePolicy", "CreateInstanceProfile"),
        *("AddRoleToInstanceProfile", "CreateServiceLinkedRole"),
    ],
)
def test_a_run_that_was_denied_something_is_completed_by_the_next(tmp_path, monkeypatch, operation):
    file = tmp_path / "aws.yaml"
    with denied(monkeypatch, operation):
        refused = init(file)
    assert refused.exit_code == 2
    assert f"error: your AWS credentials may not do {operation} (" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not file.exists()
    done(init(file))
    assert check_launcher(file).errors == ()
    lines = done(init(file))
    assert all(line.startswith("found ") for line in lines[:-2]), lines


@pytest.mark.slow
def test_running_it_from_another_address_moves_ssh_there(tmp_path, monkeypatch):
    file = tmp_path / "aws.yaml"
    done(init(file))
    with denied(monkeypatch, "RevokeSecurityGroupIngress"):
        assert init(file, "--ssh-from", "198.51.100.0/24").exit_code == 2
    lines = done(init(file, "--ssh-from", "198.51.100.0/24"))
    assert "changed security group orch: no longer lets in 203.0.113.7/32" in lines
    (group,) = client("ec2").describe_security_groups(GroupNames=["orch"])["SecurityGroups"]
    ranges = [each["CidrIp"] for rule in group["IpPermissions"] for each in rule["IpRanges"]]
    assert ranges == ["198.51.100.0/24"]


@pytest.mark.slow
def test_other_machines_are_a_matter_of_options(tmp_path):
    file = tmp_path / "small.yaml"
    words = ("--name", "small", "--instance-type", "g5.xlarge", "--workers", "2", "--no-spot")
    done(init(file, *words))
    report = check_launcher(file)
    assert (report.errors, report.warnings) == ((), ())
    assert report.launcher.max_workers == 2
    (worker,) = report.launcher.workers
    assert (worker.name, worker.instance_type, worker.num_gpus, worker.num_cpus) == ("on_demand", "g5.xlarge", 1, 4)


def test_what_is_not_given_again_stays_as_it_is_in_the_file(tmp_path):
    """Otherwise a move of ssh to another address would replace small machines by the largest ones."""
    file = tmp_path / "aws.yaml"
    words = ("--instance-type", "g5.xlarge", "--workers", "2", "--no-spot", "--bucket", "my-results")
    lines = done(init(file, *words))
    assert "up to 2 workers with 1 GPU each, $0.40 an hour idle and $2.42 with all of them" in lines[-2]
    text = file.read_text()
    done(init(file, "--ssh-from", "198.51.100.7"))
    assert file.read_text() == text
    assert everything()["buckets"] == ["my-results"]


@pytest.mark.slow
def test_a_key_pair_whose_private_key_is_elsewhere_is_refused(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    (tmp_path / ".ssh" / f"orch-{REGION}.pem").unlink()
    assert "its private key is not here: copy ~/.ssh/orch-us-east-1.pem from the machine" in init(file).stderr


@pytest.mark.slow
def test_an_edited_file_and_a_file_of_another_cluster_are_not_overwritten(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    assert f"{file} is of the cluster orch in us-east-1" in init(file, "--name", "other").stderr
    edited = file.read_text().replace("idle_timeout_minutes: 10", "idle_timeout_minutes: 5")
    file.write_text(edited)
    assert f"{file} exists and was written or edited by hand" in init(file).stderr
    assert file.read_text() == edited


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ssh-from", "0.0.0.0/0"], "--ssh-from 0.0.0.0/0 opens ssh to everybody"),
        (["--ssh-from", "home"], "--ssh-from home is no address"),
        (["--name", "My_Cluster"], "--name My_Cluster cannot be used"),
        (["--region", "moon-1"], "there is no AWS region moon-1"),
        (["--instance-type", "p9.huge"], "has no p9.huge: choose another --instance-type"),
        (["--instance-type", "g5g.xlarge"], "g5g.xlarge is arm64, and the wheels are for x86_64"),
        (["--image", "ami-00000000"], "has no image ami-00000000: give another with --image"),
        (["--image", "/no/such"], "has no parameter /no/such: give an image's id"),
        (["--bucket", "s3://mine/runs"], "--bucket s3://mine/runs is no name of a bucket"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_before_anything_is_made(tmp_path, words, told):
    before = everything()
    refused = init(tmp_path / "aws.yaml", *words)
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert everything() == before


def test_without_credentials_the_error_says_so(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    refused = orch("init", "aws", "--output", str(tmp_path / "aws.yaml"), "--ssh-from", "203.0.113.7")
    assert refused.exit_code == 2
    assert "there are no AWS credentials here: set them with aws configure" in refused.stderr


def test_without_an_address_service_the_option_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(network, "ADDRESS_SERVICE", "http://127.0.0.1:9")
    refused = orch("init", "aws", "--output", str(tmp_path / "aws.yaml"), "--image", images()[0])
    assert refused.exit_code == 2
    assert "your public address was not found" in refused.stderr
    assert "--ssh-from ADDRESS" in refused.stderr
    assert everything()["buckets"] == []


def test_it_wants_the_projects_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "run from the folder of a clone of orch" in init(tmp_path / "aws.yaml").stderr


@pytest.mark.slow
def test_the_image_can_be_named_by_a_parameter_and_is_kept_by_later_runs(tmp_path):
    file, words = tmp_path / "aws.yaml", ["--ssh-from", "203.0.113.7"]
    client("ssm").put_parameter(Name="/ours/image", Value=images()[1], Type="String")
    done(orch("init", "aws", "--output", str(file), "--image", "resolve:ssm:/ours/image", *words))
    assert check_launcher(file).launcher.workers[0].image == images()[1]
    client("ssm").put_parameter(Name="/ours/image", Value=images()[2], Type="String", Overwrite=True)
    done(orch("init", "aws", "--output", str(file), *words))
    assert check_launcher(file).launcher.workers[0].image == images()[1]


def test_a_quota_that_allows_no_machine_is_told_and_stops_nothing(tmp_path, monkeypatch):
    names = [
        "All P4, P3 and P2 Spot Instance Requests",
        "Running On-Demand P instances",
        "All F Spot Instance Requests",
    ]
    found = [{"QuotaName": name, "Value": 0.0, "QuotaCode": f"L-{place}"} for place, name in enumerate(names)]
    found[1]["Value"] = 192.0
    monkeypatch.setattr(quotas, "_quotas", lambda account: found)
    told = [line for line in done(init(tmp_path / "aws.yaml", "--dry-run")) if line.startswith("warning")]
    assert told == [
        f"warning: your quota '{names[0]}' in {REGION} is 0 CPUs, and one p4d.24xlarge has 96: ask AWS for more"
        " (L-0 of Service Quotas)"
    ]
