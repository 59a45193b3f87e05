"""The report: on a real store, on half of one, with hostile text in it, and in a real browser."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import pytest
from click.testing import CliRunner

from orch.analysis.figures import Gallery, figures
from orch.analysis.published import SWEEPS_IN_ORDER, TABLES
from orch.analysis.report.collect import Origin, collect
from orch.analysis.report.page import page
from orch.analysis.tables import FORMATS, render
from orch.cli import main
from orch.running.status import FailureGroup
from orch.store import Store
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from tests.analysis.finished import finish
from tests.browser import rendered, screenshot
from tests.engine.conftest import Sweeps

HOSTILE = "<script>document.title = 'hijacked'</script>"


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store after `orch sweep all --scale smoke`."""
    sweeps = Sweeps(tmp_path_factory.mktemp("smoke"))
    try:
        output = sweeps.run("sweep", "all", "--scale", "smoke").stdout
    finally:
        sweeps.end_all()
    assert "291 trials finished" in output
    return sweeps.store


def orch(*arguments: str, expect: int = 0) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == expect, result.output
    return result.output


def half_of(store: Store, folder: Path) -> Store:
    """A store with every other trial, and one failure whose every text is hostile."""
    half = Store.open(folder)
    trials = store.read("trials").to_pylist()
    half.write("trials", trials[::2])
    half.write("curves", [row for row in store.read("curves").to_pylist() if row["trial_id"] in half.done()])
    half.put_json("sweeps/all.json", next(iter(store.list_json("sweeps").values())))
    attempt = {"attempt_id": "a", "trial_id": trials[1]["trial_id"], "event": "end", "at": datetime.now(UTC)}
    texts = dict.fromkeys(("error_type", "error_signature", "error_message", "traceback", "host"), HOSTILE)
    half.write("attempts", [attempt | texts | {"outcome": "failed"}])
    return half


def test_on_a_real_store_every_table_and_figure_is_there(smoke, tmp_path):
    report = collect(smoke)
    assert report.scale is SMOKE
    assert report.num_done == report.num_planned == 291
    for name in TABLES:
        for kind in FORMATS:
            assert render(name, report.comparisons, report.scale, kind), (name, kind)
    gallery = figures(report.board, [sweep.name for sweep in report.sweeps])
    assert gallery.left_out == {}
    html = page(report, gallery)
    assert len(gallery.drawings) > 10
    for drawing in gallery.drawings:
        assert (drawing.caption in html) != drawing.name.startswith("heatmap"), "the page has Table 1 itself"
    assert html.index('id="table-main"') < html.index('<section id="numbers">') < html.index('id="table-additive"')
    assert [sweep.name for sweep in report.sweeps] == [*SWEEPS_IN_ORDER]
    for sweep in report.sweeps:
        assert f'id="sweep-{sweep.name}"' in html


def test_a_real_browser_shows_the_page_and_the_page_asks_for_nothing_else(smoke, tmp_path):
    output = tmp_path / "report.html"
    said = orch("report", "--store", smoke.uri, "--output", str(output))
    assert "291 of 291 trials" in said
    text = output.read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", text), "the page must not load anything"
    assert "@import" not in text
    assert not re.findall(r"url\((?!#)", text)
    shown = rendered(output)
    assert shown.count("<svg") == text.count("<svg")
    assert shown.count("<table") == text.count("<table") > 10
    picture = tmp_path / "report.png"
    screenshot(output, picture)
    pixels = matplotlib.image.imread(picture)[..., :3]
    assert len({tuple(pixel) for row in pixels[::10, ::10] for pixel in row}) > 20, "a blank page has few colours"


def test_half_a_store_is_reported_as_half_and_hostile_text_stays_text(smoke, tmp_path):
    half = half_of(smoke, tmp_path / "half")
    output = tmp_path / "report.html"
    said = orch("report", "all", "--scale", "smoke", "--store", half.uri, "--output", str(output))
    report = collect(half, ["all"], "smoke")
    assert 100 < report.num_done < 200
    assert f"{report.num_done} of 291 trials" in said
    text = output.read_text()
    assert text.count("<script") == 1, "the page's own"
    assert "&lt;script&gt;" in text
    assert "missing: 0 of 1 trials" in text
    assert "<b>1</b>trials failed" in text
    assert "<title>hijacked</title>" not in rendered(output)


class Outline(HTMLParser):
    """Collects the elements, attributes and texts of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_no_text_from_a_store_becomes_markup_wherever_the_page_shows_it(tmp_path):
    store = Store.open(tmp_path / "runs")
    for name in ("main", "angles"):
        for cell in list(SWEEPS[name].cells(SMOKE, Results.none()))[:2]:
            finish(store, cell.trials[0], ood=0.5)
    report = collect(store, ["main", "angles"], "smoke")

    def hostile(number: int) -> str:
        return f"place-{number}\"' onload='x' {{{{ 7 * 7 }}}} {HOSTILE}<img src=x>"

    now = datetime.now(UTC)
    packages = {hostile(4): hostile(5)}
    origin = Origin(hostile(1), hostile(2), 1, None, hostile(3), "<b>commit", True, packages, 1, 1.0, now, now)
    failure = FailureGroup(hostile(6), "failed", [hostile(7)] * 20, 1, hostile(8), hostile(9), hostile(10))
    by_name = {sweep.name: sweep for sweep in report.sweeps}
    cells = [replace(each, settings=hostile(14)) for each in by_name["main"].cells]
    sweeps = [
        replace(by_name["main"], cells=cells),
        replace(by_name["angles"], name=hostile(11), title=hostile(12), reproduces=hostile(13)),
    ]
    spoiled = replace(
        report, location=hostile(15), version=hostile(16), origins=[origin], failures=[failure], sweeps=sweeps
    )
    gallery = Gallery([], {hostile(17): hostile(18)})
    harmless, found = Outline(page(report, gallery=Gallery([], {}))), Outline(page(spoiled, gallery))
    assert found.elements - harmless.elements <= {"details", "summary", "pre", "code"}
    assert found.attributes == harmless.attributes
    shown = "".join(found.texts)
    for number in range(1, 19):
        assert hostile(number) in shown, number


def test_check_lists_what_differs_and_exits_with_one(smoke):
    said = orch("report", "main", "--store", smoke.uri, "--check", "0.05", expect=1)
    assert "Numbers that differ by more than 0.05" in said
    assert "worse" in said
    orch("report", "main", "--store", smoke.uri, "--check", "3", expect=0)


def test_tables_alone_are_printed_or_written(smoke, tmp_path):
    said = orch("report", "frozen-parity", "--store", smoke.uri, "--format", "markdown")
    assert said.count("|") > 20
    output = tmp_path / "tables.tex"
    orch("report", "factors", "--store", smoke.uri, "--format", "latex", "--output", str(output))
    assert r"\toprule" in output.read_text()


def test_figures_are_written_as_files(smoke, tmp_path):
    folder = tmp_path / "figures"
    orch("report", "factors", "--store", smoke.uri, "--figures", str(folder), "--output", str(tmp_path / "r.html"))
    assert sorted(path.name for path in folder.iterdir()) == ["factors.pdf", "factors.png", "factors.svg"]


def test_a_store_that_is_not_there_and_a_place_that_cannot_be_written_are_one_sentence_each(smoke, tmp_path):
    said = orch("report", "--store", str(tmp_path / "none"), expect=2)
    assert said.startswith("error: there are no results at")
    place = tmp_path / "no" / "such" / "report.html"
    said = orch("report", "angles", "--store", smoke.uri, "--output", str(place), expect=2)
    assert said.count("\n") == 1
    assert "name another place with --output" in said
