"""A server in this process, on a free port."""

import http.client
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from orch.store import Store

if TYPE_CHECKING:
    from orch.serving.server import PageServer

Answered = tuple[int, http.client.HTTPMessage, str]


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.open(tmp_path / "runs")


@pytest.fixture
def server(store) -> "Iterator[PageServer]":
    # pytest keeps this module to the end of the process, where DuckDB, which these import, complains about that.
    from orch.serving.overview import OverviewReader
    from orch.serving.routes import Routes
    from orch.serving.server import PageServer

    reader = OverviewReader(store)
    reader.seconds, reader.share = 0.2, float("inf")
    server = PageServer(Routes(reader), 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def get(server) -> Callable[..., Answered]:
    """Send a request, by default a GET as a browser would send it, and return its status, headers and text."""

    def request(path: str, method: str = "GET", headers: dict[str, str] | None = None, **query: str) -> Answered:
        host, port = server.server_address[:2]
        connection = http.client.HTTPConnection(host, port, timeout=30)
        connection.request(method, path + (f"?{urlencode(query)}" if query else ""), headers=headers or {})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, answer.headers, text

    return request
