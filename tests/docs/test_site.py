"""The documentation builds as a site without a warning, and every link in it leads somewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from orch.cli import main
from orch.store.columns import SCHEMAS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.thorough


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values.get("id") or "", values.get("name") or ""}
        if tag == "a" and values.get("href"):
            self.links.add(values["href"])
        elif values.get("src") or (tag == "link" and values.get("rel") in ("stylesheet", "preconnect")):
            self.fetched.add(values.get("src") or values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.relative_to(folder).as_posix(): Page(path.read_text()) for path in folder.rglob("*.html")}, folder


def test_every_page_of_the_documentation_is_in_the_site(site):
    pages, _ = site
    assert {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} <= set(pages)


def test_every_link_within_the_site_leads_to_a_page_and_an_anchor(site):
    pages, folder = site
    lost = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or name == "404.html":
                continue
            target = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
            path = os.path.relpath(target, folder)
            anchors = pages[path].anchors if path in pages else {""}
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in anchors):
                lost.append(f"{name}: {link}")
    assert lost == []


def test_pages_fetch_nothing_from_other_hosts(site):
    pages, _ = site
    assert [url for page in pages.values() for url in page.fetched if urlsplit(url).netloc] == []


def test_the_reference_has_every_command_and_every_column(site):
    _, folder = site
    commands = (folder / "reference/commands.html").read_text()
    assert [name for name in main.list_commands(None) if f'id="orch-{name}"' not in commands] == []
    columns = set(re.findall(r"<code>(\w+)</code>", (folder / "reference/columns.html").read_text()))
    assert {field.name for schema in SCHEMAS.values() for field in schema} <= columns
