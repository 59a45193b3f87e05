"""A bucket on this machine: moto's stand-in for S3, spoken to over the network as the real one is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest


@contextmanager
def s3_bucket(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[str]:
    """The location of a store in an empty bucket, with what it takes to reach it in the environment."""
    server_module = pytest.importorskip("moto.server", reason="needs moto, a stand-in for S3")
    boto3 = pytest.importorskip("boto3", reason="needs boto3")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "ORCH_CACHE": str(folder / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        bucket = f"bucket-{uuid4().hex[:8]}"  # moto keeps what a bucket holds for as long as the tests run
        client.create_bucket(Bucket=bucket)
        yield f"s3://{bucket}/runs?endpoint_override={host}:{port}&scheme=http"
    finally:
        server.stop()
