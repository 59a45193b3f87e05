"""A headless browser. Tests that need one are skipped where none is installed."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def find_browser() -> str:
    """Return the path of a browser, or skip the test."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser: install chromium")
    return browser


def _run(*arguments: str) -> str:
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="orch-browser-", ignore_cleanup_errors=True) as profile:
        command = [browser, *FLAGS, f"--user-data-dir={profile}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def rendered(page: Path) -> str:
    """Return the HTML of a page after its scripts have run."""
    return _run("--dump-dom", page.as_uri())


def screenshot(page: Path, picture: Path, width: int = 1300, height: int = 2000) -> None:
    _run(f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri())
