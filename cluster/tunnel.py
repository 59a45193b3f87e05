"""A port of this machine that leads to one of the head's loopback, through ssh."""

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
    """The port here. On the other side `cat` waits for the end of its input, so however this process ends, the tunnel
    ends with it. It has a session of its own: a Ctrl-C is not meant for it."""
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
    """What ssh had to say, as a sentence."""
    why = "; ".join(line.strip() for line in errors.splitlines() if line.strip()) or "ssh says nothing"
    return HeadUnreachable(
        f"the head at {head.address} cannot be reached by ssh ({why.rstrip('.')}): bring it up with ray up, let"
        " your address in, and ssh-add its key if it has a passphrase"
    )
