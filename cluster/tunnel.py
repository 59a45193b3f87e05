"""An ssh tunnel from a local port to a port on the head's loopback."""

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Iterator

from orch.cluster.head import Head, HeadUnreachable

OPEN = "orch-tunnel-open"
PATIENCE = 5.0


@contextlib.contextmanager
def tunnel(head: Head, port: int) -> Iterator[int]:
    """Open a tunnel to the head's `port` and yield the local port.

    On the head, `cat` waits for the end of its input, so the tunnel ends with this process, however that ends. The
    tunnel has its own session, so that Ctrl-C does not close it.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        local = free.getsockname()[1]
    forward = f"127.0.0.1:{local}:127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            head.ssh("-T", "-L", forward, command=f"echo {OPEN}; exec cat"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if all(line.strip() != OPEN for line in process.stdout):
                errors.seek(0)
                raise unreachable(head, errors.read())
            yield local
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()
            process.stdout.close()


def unreachable(head: Head, errors: str) -> HeadUnreachable:
    """Build the error that quotes what ssh printed."""
    why = "; ".join(line.strip() for line in errors.splitlines() if line.strip()) or "ssh printed nothing"
    return HeadUnreachable(
        f"the head at {head.address} cannot be reached by ssh ({why.rstrip('.')}): bring it up with ray up, let"
        " your address in, and ssh-add its key if it has a passphrase"
    )
