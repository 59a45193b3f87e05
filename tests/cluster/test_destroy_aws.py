"""`orch cluster destroy` against a stand-in for AWS: it removes what init made, and nothing else."""

import pytest

from orch.cluster.amazon.account import TAG
from orch.cluster.amazon.key_pair import _generate
from orch.cluster.check import check_launcher
from tests.cluster.aws_account import BUCKET, REGION, client, done, everything, images, init, orch, policy
from tests.cluster.permissions import allows

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("aws_account")]


@pytest.mark.slow
def test_a_bucket_of_the_users_own_is_used_and_never_removed(tmp_path):
    file = tmp_path / "aws.yaml"
    client("s3").create_bucket(Bucket="my-results")
    done(init(file, "--bucket", "my-results"))
    assert check_launcher(file).launcher.store == "s3://my-results/runs"
    assert allows(policy("worker"), "s3:PutObject", "arn:aws:s3:::my-results/runs/part")
    lines = done(orch("destroy", str(file), "--yes", "--results"))
    assert "kept bucket s3://my-results: orch cluster init did not make it" in lines
    assert everything()["buckets"] == ["my-results"]


@pytest.mark.slow
def test_a_bucket_that_init_made_before_the_user_named_another_is_removed_too(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    client("s3").create_bucket(Bucket="my-results")
    done(init(file, "--bucket", "my-results"))
    lines = done(orch("destroy", str(file), "--yes"))
    assert f"removed bucket s3://{BUCKET}" in lines
    assert everything()["buckets"] == ["my-results"]


def test_destroy_removes_everything_that_was_made_and_nothing_else(tmp_path):
    before = everything()
    done(init(tmp_path / "other.yaml", "--name", "other"))
    others = everything()
    file = tmp_path / "aws.yaml"
    done(init(file))
    lines = done(orch("destroy", str(file), "--yes"))
    assert "removed bucket s3://" + BUCKET in lines
    assert everything() == others
    done(orch("destroy", str(tmp_path / "other.yaml"), "--yes"))
    assert everything() == before
    assert done(orch("destroy", str(file), "--yes")) == ["nothing is left to remove"]
    assert not list((tmp_path / ".ssh").iterdir())


@pytest.mark.slow
def test_destroy_asks_first(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    before = everything()
    refused = orch("destroy", str(file), answer="n\n")
    assert refused.exit_code != 0
    assert "would remove role" in refused.stdout
    assert everything() == before
    unanswered = orch("destroy", str(file))
    assert unanswered.exit_code == 2
    assert "there is no terminal to ask for consent: repeat the command with --yes" in unanswered.stderr
    assert everything() == before
    assert orch("destroy", str(file), answer="y\n").exit_code == 0
    assert everything()["roles"] == []


def test_a_bucket_with_results_is_kept_unless_they_go_too(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    client("s3").put_object(Bucket=BUCKET, Key="runs/trials/part.parquet", Body=b"rows")
    lines = done(orch("destroy", str(file), "--yes"))
    assert f"kept bucket s3://{BUCKET}: it has results; --results removes it with them" in lines
    assert everything()["buckets"] == [BUCKET]
    assert everything()["roles"] == []
    lines = done(orch("destroy", str(file), "--yes", "--results"))
    assert f"removed bucket s3://{BUCKET} with all results" in lines
    assert everything()["buckets"] == []


@pytest.mark.slow
def test_destroy_refuses_while_machines_are_up(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    ec2 = client("ec2")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "ray-cluster-name", "Value": "orch"}]}]
    started = ec2.run_instances(ImageId=images()[0], MinCount=1, MaxCount=1, TagSpecifications=tags)["Instances"][0]
    refused = orch("destroy", str(file), "--yes")
    assert refused.exit_code == 2
    assert f"{started['InstanceId']} of this cluster are still up: run ray down {file} first" in refused.stderr
    assert everything()["buckets"] == [BUCKET]


@pytest.mark.slow
def test_what_somebody_else_made_under_the_same_name_is_neither_used_nor_removed(tmp_path):
    file = tmp_path / "aws.yaml"
    done(init(file))
    client("iam").untag_role(RoleName=f"orch-{REGION}-head", TagKeys=[TAG])
    assert "orch cluster init did not make it: choose another --name" in init(file).stderr
    lines = done(orch("destroy", str(file), "--yes"))
    assert f"kept role orch-{REGION}-head: orch cluster init did not make it" in lines
    assert everything()["roles"] == [f"orch-{REGION}-head"]


@pytest.mark.slow
def test_a_key_of_the_users_own_is_used_and_not_deleted(tmp_path):
    path = tmp_path / ".ssh" / f"orch-{REGION}.pem"
    _generate(path, "ada@laptop")
    file = tmp_path / "aws.yaml"
    done(init(file))
    done(orch("destroy", str(file), "--yes"))
    assert path.exists()
