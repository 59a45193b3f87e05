"""The web server of `orch serve`: loopback only, read-only, and nothing but the standard library.

A page of another site cannot use it: a request must name this machine as its host, which defeats DNS rebinding; a query
must come from this page; and no answer may be read, framed or executed elsewhere.
"""

import contextlib
import json
import sys
import traceback
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from orch.core.errors import OrchError
from orch.core.printable import printable_lines
from orch.serving.routes import Answer, Routes

LOOPBACK = "127.0.0.1"
_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
IDLE_SECONDS = 10.0
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """Serves the pages of one store on the loopback interface."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, routes: Routes, port: int):
        self.routes = routes
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise OrchError(f"port {port} cannot be used ({error.strerror}): name another with --port") from error

    def server_close(self) -> None:
        """End the streams, and wait for every answer that is under way."""
        self.routes.closing.set()
        super().server_close()

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error of our own. A browser that has gone away is none."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            for line in printable_lines(traceback.format_exc()):
                print(line, file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "orch", ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def __getattr__(self, name: str) -> Any:
        # The base class looks a method up by its name, such as do_POST, and says 501 where there is none.
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def _refuse_method(self) -> None:
        text = "this page is read-only: use GET"
        self._send(Answer.plain(text, HTTPStatus.METHOD_NOT_ALLOWED), True, {"Allow": "GET, HEAD"})

    def _answer(self, with_body: bool) -> None:
        routes = self.server.routes
        if not _is_loopback(self.headers.get_all("Host") or []):
            self._send(Answer.plain("ask for 127.0.0.1 or localhost", HTTPStatus.MISDIRECTED_REQUEST), with_body)
            return
        try:
            parts = urlsplit(self.path)
            path, query = unquote(parts.path), dict(parse_qsl(parts.query, max_num_fields=20))
        except ValueError:
            self._send(Answer.plain("this is no address of the page", HTTPStatus.BAD_REQUEST), with_body)
            return
        if path == "/events" and with_body:
            self._stream(query.get("page", "/"), query.get("version", ""))
            return
        try:
            answer = routes.answer(path, query, from_elsewhere=self._from_elsewhere())
        except Exception:
            for line in printable_lines(traceback.format_exc()):
                print(line, file=sys.stderr)
            answer = Answer.plain(
                "this page could not be made: the terminal says why", HTTPStatus.INTERNAL_SERVER_ERROR
            )
        self._send(answer, with_body)

    def _from_elsewhere(self) -> bool:
        """Whether a page of another site made the browser send this request."""
        return self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")

    def _send(self, answer: Answer, with_body: bool, more: dict[str, str] | None = None) -> None:
        self.send_response(answer.status)
        headers = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))} | HEADERS | (more or {})
        if answer.file_name:
            headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)

    def _stream(self, page: str, version: str) -> None:
        """Send the parts of a page that have changed, until the browser goes away."""
        if self._from_elsewhere():
            self._send(Answer.plain("this page does not serve others", HTTPStatus.FORBIDDEN), True)
            return
        self.send_response(HTTPStatus.OK)
        for name, value in ({"Content-Type": "text/event-stream; charset=utf-8"} | HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError, TimeoutError):
            for event in _events(self.server.routes.changes(page, version)):
                self.wfile.write(event)
                self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet."""


def _events(changes: "Iterator[tuple[str, Any] | None]") -> Iterator[bytes]:
    for change in changes:
        if change is None:
            yield b": nothing new\n\n"  # notices that the browser has gone
        else:
            name, value = change
            yield f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()


def _is_loopback(hosts: list[str]) -> bool:
    """Return whether the one Host header of a request names this machine, with any port: ssh -L may change it."""
    if len(hosts) != 1:
        return False
    name, colon, port = hosts[0].rpartition(":") if not hosts[0].endswith("]") else (hosts[0], "", "")
    return (name if colon else hosts[0]).lower() in _NAMES and (not colon or port.isdecimal())
