"""A proxy in front of an S3 server, which loses requests, answers and connections as a bad network and service do."""

import contextlib
import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TROUBLES = {
    "refuse": "the connection is reset before the request is passed on",
    "slow": "the request waits for up to a second",
    "busy": "the answer is 503 Slow Down, and nothing was done",
    "broken": "the answer is 500, and nothing was done",
    "unsure": "the request is carried out, and its answer is lost",
    "cut": "the answer ends in the middle of its body",
}
"""Ways in which a single request goes wrong."""

ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>as ordered</Message></Error>'


class Proxy:
    """Passes requests on to a port of this machine; `share` of them meet one of `troubles`."""

    def __init__(self, target: int, seed: int = 0):
        self.target = target
        self.random = random.Random(seed)
        self.share = 0.0
        self.troubles: tuple[str, ...] = tuple(TROUBLES)
        self.down = False
        """Whether every connection is met with silence, as when a network is partitioned."""
        self.met: Counter[str] = Counter()
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def trouble(self) -> str | None:
        """Choose what the next request meets."""
        if self.random.random() >= self.share:
            return None
        trouble = self.random.choice(self.troubles)
        self.met[trouble] += 1
        return trouble

    def close(self) -> None:
        self.down = False
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients are killed in the middle of requests here."""


class _Handler(BaseHTTPRequestHandler):
    owner: Proxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None: ...

    def _pass_on(self) -> None:
        owner = self.owner
        while owner.down:
            time.sleep(0.1)
        body = self._body()
        trouble = owner.trouble()
        if trouble == "refuse":
            return self._reset()
        if trouble == "slow":
            time.sleep(owner.random.random())
        if trouble in ("busy", "broken"):
            status, code = (503, "SlowDown") if trouble == "busy" else (500, "InternalError")
            return self._answer(status, {"Content-Type": "application/xml"}, ERROR.format(code).encode())
        status, headers, data = self._forward(body)
        if trouble == "unsure":
            return self._reset()
        return self._answer(status, headers, data, cut=trouble == "cut")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.owner.target, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "transfer-encoding"}
        headers["Content-Length"] = str(len(body))
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: dict[str, str], data: bytes, cut: bool = False) -> None:
        self.send_response_only(status)
        length = headers.pop("Content-Length", str(len(data))) if self.command == "HEAD" else str(len(data))
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._reset()

    def _reset(self) -> None:
        """Close the connection as one does that has broken down."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
