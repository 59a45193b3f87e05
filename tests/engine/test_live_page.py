"""The live page beside a real sweep, driven by a real browser; a driver that is killed; the same on a bucket."""

import re
import signal
import subprocess

import pytest

from orch.store import Store
from tests.browser_session import open_browser
from tests.engine.bucket import s3_bucket
from tests.engine.conftest import wait_for

pytestmark = pytest.mark.slow

PART = (
    "--where",
    "modulus=2,model=bilinear,lstm,block_diagonal,learning_rate=0.003",
    "--cpus",
    "2",
    "--checkpoint-seconds",
    "1",
)
FAULTS = [["raise <img src=x onerror=\"document.title='owned'\">", {"model": "lstm"}], ["slow 1", {}]]


def page_of(sweeps) -> tuple[subprocess.Popen, str]:
    """Start `orch serve` and return it with its address."""
    server = sweeps.start("serve", "--port", "0")
    return server, re.search(r"http://\S+", server.stderr.readline())[0]


def test_a_browser_follows_a_sweep_from_nothing_through_a_kill_to_its_end(sweeps):
    server, address = page_of(sweeps)
    with open_browser() as page:
        page.open(address)
        driver = sweeps.start("sweep", "demo", *PART, faults=FAULTS)
        page.wait_for("document.querySelectorAll('.tiles td').length === 4", 240)
        page.wait_for("document.querySelector('.card .line')?.getAttribute('d')", 240)
        lines = "[...document.querySelectorAll('.card .line:not(.tip)')]"
        lengths = f"Math.max(0, ...{lines}.map((line) => line.getAttribute('d').length))"
        before = page.run(lengths)
        page.wait_for(f"{lengths} > {before}", 240)
        page.wait_for("document.querySelector('.failure')?.textContent.includes('<img src=x')", 240)
        assert page.run("document.querySelectorAll('main img').length") == 0
        assert page.run("document.title") != "owned"

        driver.send_signal(signal.SIGKILL)
        driver.wait()
        page.wait_for("document.querySelectorAll('.card').length === 0", 60)
        sweeps.run("resume")
        page.wait_for("document.querySelectorAll('.tiles td:not(.blank)').length === 4", 60)
        page.wait_for("document.querySelectorAll('.failure').length === 0")
        page.wait_for("document.querySelectorAll('.card').length === 0")
    left = Store.open(sweeps.folder / "runs").list_json("drivers").values()
    assert [each for each in left if each["pid"] != driver.pid] == [], "the resumed driver left nothing behind"
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=30)
    assert errors.splitlines()[-1] == "ended"
    assert "Traceback" not in errors


def test_workers_publish_their_progress_to_a_bucket(sweeps, monkeypatch, tmp_path):
    with s3_bucket(monkeypatch, tmp_path) as location:
        sweeps.location = location
        driver = sweeps.start("sweep", "demo", *PART, faults=[["slow 0.2", {}]])
        store = Store.open(location)

        def told() -> list:
            files = store.list_json("drivers").values()
            return [each for values in files for each in values["counts"].get("trials", ()) if each["curve"]]

        first = wait_for(told)
        assert {each["label"].split()[0] for each in first} <= {"bilinear", "lstm", "block_diagonal"}
        known = {each["trial_id"]: len(each["curve"]) for each in first}
        wait_for(lambda: any(len(each["curve"]) > known.get(each["trial_id"], 1000) for each in told()))
        assert "bilinear" in sweeps.run("watch", "--once").stdout
        driver.send_signal(signal.SIGINT)
        driver.wait()
        assert store.list_files("drivers") == []
