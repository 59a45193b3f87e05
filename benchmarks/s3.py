"""A simulated S3 server on the loopback interface, in a separate process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def s3_server(cache: str) -> Iterator[str]:
    """Yield the location of an empty store; parts read from it are cached below `cache`."""
    import boto3

    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
    os.environ["ORCH_CACHE"] = cache
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = "import sys; from moto.server import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", serve, "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
            for _ in range(100):
                try:
                    client.create_bucket(Bucket="bucket")
                    break
                except Exception:  # not up yet
                    time.sleep(0.2)
            yield f"s3://bucket/runs?endpoint_override=127.0.0.1:{port}&scheme=http"
        finally:
            server.terminate()
