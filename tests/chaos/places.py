"""Where the store of a round is: a folder, or a bucket behind a proxy that can be made to fail."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.chaos.processes import ROOT
from tests.chaos.proxy import Proxy


class Place:
    """The location of a store, and its files without any of the store's own rules."""

    name = "disk"

    def __init__(self, folder: Path):
        self.folder = folder
        self.root = str(folder / "runs")
        self.location = self.root
        """The location that processes are given."""
        self.direct = self.root
        """The location for the checker, which no fault touches."""
        self.environment: dict[str, str] = {}

    def _open(self) -> tuple[Any, str]:
        from pyarrow import fs

        return fs.LocalFileSystem(), self.root

    def files(self) -> dict[str, int]:
        """Return the size of every file below the root, hidden ones too, by its path."""
        from pyarrow import fs

        system, root = self._open()
        found = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        return {info.path.removeprefix(f"{root}/"): info.size for info in found if info.is_file}

    def read(self, path: str) -> bytes | None:
        system, root = self._open()
        with contextlib.suppress(FileNotFoundError), system.open_input_stream(f"{root}/{path}") as stream:
            data: bytes = stream.read()
            return data
        return None

    def write(self, path: str, data: bytes) -> None:
        system, root = self._open()
        with system.open_output_stream(f"{root}/{path}") as stream:
            stream.write(data)

    def delete(self, path: str) -> None:
        system, root = self._open()
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(f"{root}/{path}")


class Bucket(Place):
    """A bucket of moto's S3 server, reached through a proxy."""

    name = "s3"

    def __init__(self, folder: Path, port: int, proxy: Proxy):
        super().__init__(folder)
        import boto3

        self.proxy = proxy
        bucket = f"round-{folder.name.lower().replace('_', '-')}"
        self.environment = credentials(folder)
        os.environ.update(credentials(folder))
        boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1").create_bucket(
            Bucket=bucket
        )
        self.root = f"{bucket}/runs"
        self.location = f"s3://{self.root}?endpoint_override=127.0.0.1:{proxy.port}&scheme=http"
        self.direct = f"s3://{self.root}?endpoint_override=127.0.0.1:{port}&scheme=http"

    def _open(self) -> tuple[Any, str]:
        from pyarrow import fs

        return fs.FileSystem.from_uri(self.direct)[0], self.root

    def read(self, path: str) -> bytes | None:
        """Read a file, again if its answer was cut short because a process of the round replaced it meanwhile."""
        with contextlib.suppress(OSError):
            return super().read(path)
        return super().read(path)


def credentials(folder: Path) -> Mapping[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "ORCH_CACHE": str(folder / "cache"),
    }


@contextlib.contextmanager
def s3_server() -> Iterator[int]:
    """Start moto's S3 server in a process of its own, and return its port."""
    code = (
        "import time; from moto.server import ThreadedMotoServer as S;"
        " s = S(ip_address='127.0.0.1', port=0, verbose=False); s.start();"
        " print(s.get_host_and_port()[1], flush=True); import sys; sys.stdin.read()"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).close()
                break
        yield port
    finally:
        server.kill()
        server.communicate()
