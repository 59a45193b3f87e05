"""What the roles of a cluster's machines may do in the account: what they need, and no more."""

import json

import pytest
import yaml

from tests.cluster.aws_account import ACCOUNT, BUCKET, REGION, done, init, policy
from tests.cluster.permissions import allows

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("aws_account")]
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}:"


def test_no_policy_lets_a_machine_change_everything(tmp_path):
    done(init(tmp_path / "aws.yaml"))
    for kind in ("head", "worker"):
        for statement in policy(kind)["Statement"]:
            assert statement["Effect"] == "Allow"
            assert not any("*" in action for action in statement["Action"]), statement
            if "*" in statement["Resource"]:
                assert all(action.startswith("ec2:Describe") for action in statement["Action"]), statement
    assert "ec2" not in json.dumps(policy("worker"))


def test_the_policies_allow_what_is_needed_and_no_more(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    head, worker = policy("head"), policy("worker")
    subnet = yaml.safe_load(file.read_text())["available_node_types"]["head"]["node_config"]["SubnetIds"][0]
    for role in (head, worker):
        assert allows(role, "s3:PutObject", f"arn:aws:s3:::{BUCKET}/runs/part")
        assert allows(role, "s3:ListBucket", f"arn:aws:s3:::{BUCKET}")
        assert not allows(role, "s3:PutObject", "arn:aws:s3:::another/runs/part")
        assert not allows(role, "s3:PutBucketPolicy", f"arn:aws:s3:::{BUCKET}")
        assert not allows(role, "s3:DeleteBucket", f"arn:aws:s3:::{BUCKET}")
    assert allows(head, "ec2:RunInstances", f"{EC2}instance/*", aws__RequestTag__ray_cluster_name="orch")
    assert not allows(head, "ec2:RunInstances", f"{EC2}instance/*")
    assert not allows(head, "ec2:RunInstances", f"{EC2}instance/*", aws__RequestTag__ray_cluster_name="another")
    assert allows(head, "ec2:RunInstances", f"{EC2}subnet/{subnet}")
    assert not allows(head, "ec2:RunInstances", f"{EC2}subnet/subnet-other")
    assert not allows(head, "ec2:RunInstances", f"{EC2}security-group/sg-other")
    assert allows(head, "ec2:TerminateInstances", f"{EC2}instance/i-1", aws__ResourceTag__ray_cluster_name="orch")
    assert not allows(head, "ec2:TerminateInstances", f"{EC2}instance/i-1", aws__ResourceTag__ray_cluster_name="other")
    assert not allows(head, "ec2:CreateTags", f"{EC2}instance/i-1", aws__RequestTag__ray_cluster_name="orch")
    role = f"arn:aws:iam::{ACCOUNT}:role/orch-{REGION}-"
    to_ec2 = {"iam__PassedToService": "ec2.amazonaws.com"}
    assert allows(head, "iam:PassRole", f"{role}worker", **to_ec2)
    assert not allows(head, "iam:PassRole", f"{role}head", **to_ec2)
    assert not allows(head, "iam:PassRole", f"{role}worker", iam__PassedToService="lambda.amazonaws.com")
    assert not allows(worker, "ec2:RunInstances", f"{EC2}instance/*", aws__RequestTag__ray_cluster_name="orch")
