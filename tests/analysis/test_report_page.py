"""The page of a report for those who read it: small, in any width, light and dark, by mouse, finger and keyboard."""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from orch.analysis.figures import figures
from orch.analysis.figures.panels import line_colour
from orch.analysis.figures.style import _SPARE, FAINT, INK, OURS, PUBLISHED, SOFT
from orch.analysis.report.collect import collect
from orch.analysis.report.page import page as render_page
from orch.analysis.tables.colour import DARK, GRAPHICS, LIGHT, NUM_STEPS, TEXT, background, contrast, ink
from orch.cli import main
from orch.models import REGISTRY
from orch.models.look import Look
from orch.store import Store
from tests.browser import rendered

CSS = resources.files("orch.analysis.report").joinpath("page.css").read_text()
DRIVE = """
const table = document.querySelector("#results table.plain");
const rows = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);
const column = (place) => rows().map((row) => row.cells[place].textContent);
const out = [column(4).join("|")];
const best = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.startsWith("best"));
table.tHead.rows[0].cells[best].querySelector("button").click();
out.push(column(best).join("|"), table.tHead.rows[0].cells[best].ariaSort);
table.tHead.rows[0].cells[best].querySelector("button").click();
out.push(column(best).join("|"));
const input = document.querySelector("#results input[type=search]");
input.value = "LSTM 1000"; input.dispatchEvent(new Event("input"));
out.push(column(0).join("|"));
const cell = document.querySelector(".paper-table td[title]");
cell.querySelector("b").click();
out.push(document.getElementById("cell").textContent);
cell.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
out.push(String(document.activeElement === cell.nextElementSibling));
cell.blur(); document.activeElement.blur();
out.push(String(document.getElementById("cell").hidden), String(document.documentElement.scrollWidth <= innerWidth));
document.title = out.join("\\n");
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two bundled sweeps: one with published numbers, one without."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    arguments = ["report", "factors", "data-efficiency", "--scale", "laptop", "--store", "bundled"]
    result = CliRunner().invoke(main, [*arguments, "--output", str(path)])
    assert result.exit_code == 0, result.output
    return path


def test_the_main_table_comes_first_then_the_claims_then_the_rest_and_the_page_is_small() -> None:
    report = collect(Store.open("bundled"), ["factors", "main", "additive"], "laptop")
    assert [sweep.name for sweep in report.sweeps] == ["main", "additive", "factors"], "in the order of the paper"
    html = render_page(report, figures(report.board, ["main", "additive", "factors"]))
    marks = ['class="paper-table tiles"', 'id="table-main"', 'id="claims"', 'id="sweep-additive"', 'id="table-factors"']
    places = [html.index(mark) for mark in marks]
    assert places == sorted(places)
    assert len(html) < 2e6
    assert html.count('class="sheet"') == 6, "lengths and learning curves of three tasks"


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_tables_sort_and_filter_and_a_cell_tells_its_trials_by_keyboard(page: Path, tmp_path: Path) -> None:
    driven = tmp_path / "driven.html"
    driven.write_text(page.read_text().replace("</body>", f"<script>{DRIVE}</script></body>"))
    title = re.search("<title>(.*?)</title>", rendered(driven), re.DOTALL)
    assert title is not None
    seeds, ascending, order, descending, models, trials, moved, hidden, fits = title[1].split("\n")
    found = [number(text) for text in ascending.split("|")]
    assert found == sorted(found)
    assert len(found) == len(seeds.split("|")) > 20
    assert order == "ascending"
    assert [number(text) for text in descending.split("|")] == found[::-1]
    assert set(models.split("|")) == {"LSTM"}
    assert re.search(r"Trials by rate: 1e-3: \d\.\d\d", trials), trials
    assert (moved, hidden, fits) == ("true", "true", "true")


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", css))


def themes() -> Iterator[dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    yield colours(light)
    yield colours(light) | colours(dark)


def inverted(colour: str) -> str:
    """Return a colour as the style sheet shows figures on a dark page: CSS `invert`, then `hue-rotate(180deg)`."""
    filters = re.search(r"filter: invert\((\.\d+)\) hue-rotate\(180deg\)", CSS)
    assert filters is not None
    amount = float(filters[1])
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    turned = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
    shown = turned @ (channels * (1 - amount) + (1 - channels) * amount)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in shown.clip(0, 1))


def looks() -> Iterator[Look]:
    for model in REGISTRY.values():
        yield from getattr(model, "looks", {}).values()
    yield from _SPARE


def test_all_text_of_the_page_has_the_contrast_that_wcag_asks_for() -> None:
    for theme in themes():
        for text in ("ink", "soft", "accent", "bad", "good"):
            for behind in ("paper", "tint"):
                assert contrast(theme[text], theme[behind]) >= TEXT, (text, behind, theme)
    for ramp in (LIGHT, DARK):
        for step in range(NUM_STEPS + 1):
            colour = background(step / NUM_STEPS, ramp)
            assert contrast(ink(colour), colour) >= TEXT


def test_all_lines_and_labels_of_figures_have_it_too_on_a_light_and_on_a_dark_page() -> None:
    light, dark = (theme["paper"] for theme in themes())
    lines = {line_colour(look) for look in looks()}
    assert len(lines) > 30
    for colour in {*lines, OURS, PUBLISHED, SOFT}:
        assert contrast(colour, light) >= GRAPHICS, colour
        assert contrast(inverted(colour), dark) >= GRAPHICS, colour
    for colour in (INK, SOFT):
        assert contrast(colour, light) >= TEXT
        assert contrast(inverted(colour), dark) >= TEXT, colour
    assert contrast(inverted("#ffffff"), dark) < 1.2, "what is white must not glare on a dark page"
    assert contrast(inverted(FAINT), dark) < contrast(inverted(SOFT), dark)
