"""A headless Chromium that a test drives: pages it opens, scripts it runs in them, pictures it takes.

It is spoken to over two pipes (`--remote-debugging-pipe`), so no port is opened and no package is needed.
"""

import base64
import contextlib
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser import FLAGS, find_browser


class BrowserPage:
    """One page of a running browser."""

    def __init__(self, reading: int, writing: int):
        self._reading, self._writing = reading, writing
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.messages: list[str] = []
        """What the browser complained about: errors of scripts, and what the content security policy refused."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command, and return its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60.0)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _receive(self, seconds: float) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._reading, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Log.entryAdded":
            self.messages.append(event["params"]["entry"]["text"])
        if event.get("method") == "Runtime.exceptionThrown":
            self.messages.append(event["params"]["exceptionDetails"]["text"])

    def open(self, address: str) -> None:
        """Open an address, and wait until the page is there."""
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = 60.0) -> Any:
        """Return the value of an expression as soon as it is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with contextlib.suppress(AssertionError):  # a page that is being replaced cannot be asked
                if value := self.run(script):
                    return value
            time.sleep(0.1)
        raise AssertionError(f"{script} did not become true; the page says:\n{self.run('document.body.innerText')}")

    def look(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Use a window of this size and colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        """Save a picture of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def open_browser() -> Iterator[BrowserPage]:
    """Start a browser with an empty page, and end it afterwards."""
    browser = find_browser()
    to_browser, from_browser = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="orch-browser-", ignore_cleanup_errors=True) as profile:

        def connect() -> None:
            reading, writing = os.dup(to_browser[0]), os.dup(from_browser[1])
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        command = [browser, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            command, preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            yield BrowserPage(from_browser[0], to_browser[1])
        finally:
            process.kill()
            process.wait()
            os.close(from_browser[0])
            os.close(to_browser[1])
