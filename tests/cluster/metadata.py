"""A stand-in for the metadata server of a cloud, which tells a machine that it is about to be reclaimed."""

import http.client
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TOKEN = "a-token-of-the-server"


class Metadata:
    """The server: it says nothing of a reclaim until `reclaimed` is set, and counts what it was asked."""

    def __init__(self) -> None:
        self.reclaimed = False
        self.num_asked = 0
        self.address = ""

    def answer(self, method: str, path: str, headers: http.client.HTTPMessage) -> tuple[int, str]:
        """Return the status and the text for a request, as EC2 (with tokens only) and Google Cloud answer it."""
        self.num_asked += 1
        if path == "/latest/api/token":
            lives = headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            return (200, TOKEN) if method == "PUT" and lives else (400, "")
        if path == "/latest/meta-data/spot/instance-action":
            if headers.get("X-aws-ec2-metadata-token") != TOKEN:
                return 401, ""
            found = '{"action": "terminate", "time": "2026-11-18T12:00:00Z"}'
            return (200, found) if self.reclaimed else (404, "")
        if path == "/computeMetadata/v1/instance/preempted":
            if headers.get("Metadata-Flavor") != "Google":
                return 403, ""
            return 200, "TRUE" if self.reclaimed else "FALSE"
        return 404, ""


@contextmanager
def metadata_server() -> Iterator[Metadata]:
    """Serve metadata on a port of this machine."""
    metadata = Metadata()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            status, text = metadata.answer(self.command, self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = _answer

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        metadata.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield metadata
        finally:
            server.shutdown()
            thread.join()
