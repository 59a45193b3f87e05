"""The paper's tables on a terminal, in Markdown, LaTeX and HTML: complete, well formed and escaped."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.published import TABLES
from orch.analysis.tables import (
    READINGS,
    lay_out,
    render,
    render_all,
    stylesheet,
)
from orch.analysis.tables.colour import DARK, LIGHT, NUM_STEPS, background
from orch.analysis.tables.latex import MOST_LINES, PREAMBLE
from orch.analysis.tables.latex import escape as escape_latex
from orch.analysis.tables.markdown import escape as escape_markdown
from orch.sweeps.scales import PAPER, SMOKE
from tests.analysis.invented import invented_results

SCRIPT = "<script>alert('&')</script>"


@pytest.fixture
def clean(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return monkeypatch


def test_piped_output_is_plain_and_not_wrapped(clean, comparisons):
    text = render("main", comparisons, PAPER)
    assert "\x1b" not in text
    assert re.search(r"Bilinear( +1\.00  ?1\.00§?  ?±0\.00){6}\n", text)


def test_a_terminal_is_coloured_unless_no_color_is_set(clean, comparisons):
    clean.setenv("FORCE_COLOR", "1")
    clean.setenv("COLUMNS", "150")
    coloured = render("main", comparisons, PAPER)
    assert "\x1b[38;5;" in coloured
    clean.setenv("NO_COLOR", "1")
    plain = render("main", comparisons, PAPER)
    assert "\x1b" not in plain
    assert without_colour(coloured).split() == plain.split()


def without_colour(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.thorough
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", TABLES)
def test_no_number_is_cut_off_on_a_narrow_terminal(clean, comparisons, name, reading):
    clean.setenv("FORCE_COLOR", "1")
    clean.setenv("COLUMNS", "80")
    text = without_colour(render(name, comparisons, PAPER, reading=reading))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "…" not in text
    # A row's name of a line stands before its numbers; those of the caption do not count.
    lines = [line for line in text.splitlines() if re.search(r"^ .*\bpublished +\d", line)]
    shown = sum(len(re.findall(r"\d\.\d\d", line)) for line in lines)
    assert shown == len(lay_out(name, comparisons, PAPER).entries)


@pytest.mark.parametrize("reading", READINGS)
def test_every_row_of_a_markdown_table_has_as_many_columns_as_its_head(comparisons, reading):
    text = render_all(comparisons, PAPER, "markdown", reading)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 3 * 2 + 3 * 2 + 2 + 2 + 3 + 2 + 2
    for table in tables:
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(counts) == 1


def test_markdown_cells_say_ours_then_the_published_value_and_the_difference(comparisons):
    text = render("dihedral", comparisons, PAPER, "markdown")
    assert (
        "| Bilinear | ? (1.00) | × (1.00) | 1.00\\*‡ (1.00, ±0.00) | 1.00† (1.00, ±0.00) | 0.25 (1.00, **−0.75**) |"
        in text
    )
    assert "0.41 (0.12 also 0.41, **+0.29**)" in render("param_matched", comparisons, PAPER, "markdown")


def test_markdown_is_escaped():
    assert escape_markdown("a|b *c* _d_ <e> [f]") == r"a\|b \*c\* \_d\_ \<e\> \[f\]"
    text = render("main", compare(Board(SMOKE)), replace(SMOKE, name=SCRIPT), "markdown")
    assert "<script>" not in text


def test_latex_is_escaped():
    assert escape_latex(r"50% of $x_1 & {y} #2 ~ ^ \z") == (
        r"50\% of \$x\_1 \& \{y\} \#2 \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )
    assert escape_latex("−0.02 ±0.10 2–10 × † ‡ §") == r"$-$0.02 $\pm$0.10 2--10 $\times$ $\dagger$ $\ddagger$ \S{}"
    assert r"100\% small" in render("main", compare(Board(SMOKE)), replace(SMOKE, about="100% small"), "latex")


def test_latex_says_once_which_packages_it_needs():
    text = render_all(compare(Board(SMOKE)), SMOKE, "latex")
    head = text[: text.index(r"\begin{table}")]
    assert all(line.startswith("%") for line in head.split("\n") if line)
    for package in (r"\usepackage{booktabs}", r"\usepackage[table]{xcolor}"):
        assert head.count(package) == text.count(package) == 1


@pytest.mark.parametrize("reading", READINGS)
def test_latex_is_balanced_and_its_rows_have_as_many_cells_as_columns(comparisons, reading):
    text = render_all(comparisons, PAPER, "latex", reading)
    bare = re.sub(r"\\[\\{}&%$#_]", lambda found: r"\\" if found[0] == r"\\" else "", text)
    assert bare.isascii()
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", bare)[:2] == ["document", "table"]  # the first stands in the comment
    floats = re.findall(r"\\begin\{tabular\}\{l\*\{(\d+)\}\{c\}\}(.*?)\\end\{tabular\}", bare, re.DOTALL)
    assert len(floats) >= 3 + 3 + 1 + 1 + 1 + 1 + 1
    for num_columns, body in floats:
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) <= MOST_LINES + 2, "it would run off the page"
        for line in rows:
            spanned = sum(int(width) - 1 for width in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert line.count("&") + spanned == int(num_columns)
    labels = re.findall(r"\\label\{([^}]*)\}", bare)
    assert len(labels) == len(set(labels)) == len(floats)


def test_latex_uses_only_commands_of_the_packages_it_names(comparisons):
    text = render_all(comparisons, PAPER, "latex").removeprefix(PREAMBLE)
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) == {
        *("begin", "end", "caption", "label", "centering", "scriptsize", "setlength", "tabcolsep", "multicolumn"),
        *("toprule", "midrule", "bottomrule", "cmidrule", "addlinespace"),
        *("cellcolor", "textcolor"),
        *(
            "textbf",
            "tiny",
            "rlap",
            "pm",
            "times",
            "dagger",
            "ddagger",
            "S",
            "smallskip",
            "parbox",
            "linewidth",
            "noindent",
        ),
    }


def test_latex_compiles(comparisons, tmp_path):
    compiler = next(filter(None, map(shutil.which, ("pdflatex", "lualatex", "xelatex"))), None)
    if compiler is None:
        pytest.skip("no LaTeX is installed")
    for reading in READINGS:
        body = render_all(comparisons, PAPER, "latex", reading)
        packages = "\\usepackage{booktabs}\n\\usepackage[table]{xcolor}"
        source = f"\\documentclass{{article}}\n{packages}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
        (tmp_path / f"{reading}.tex").write_text(source)
        command = [compiler, "-interaction=nonstopmode", "-halt-on-error", f"{reading}.tex"]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout[-2000:]


class Outline(HTMLParser):
    """Checks that elements close as they open, and collects them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.started, self.attributes, self.rows = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.open.append(tag)
        self.started.append(tag)
        self.attributes += attributes
        if tag == "table":
            self.rows.append([])
        if tag == "tr":
            self.rows[-1].append([])
        if tag in ("td", "th"):
            self.rows[-1][-1].append((int(values.get("colspan", 1)), int(values.get("rowspan", 1))))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_well_formed_and_its_rows_have_as_many_columns_as_each_other(comparisons):
    found = Outline(render_all(comparisons, PAPER, "html"))
    assert found.started.count("table") == 2 * len(TABLES)
    for table in found.rows:
        widths = [0] * (len(table) + 10)
        for place, row in enumerate(table):
            for wide, tall in row:
                for reached in range(place, place + tall):
                    widths[reached] += wide
        assert len(set(widths[: len(table)])) == 1
        assert set(widths[len(table) :]) == {0}


def test_html_escapes_what_comes_from_outside():
    finished = invented_results(SMOKE)
    for row in finished.values():
        row["trial_id"] = f'"{SCRIPT}'
    text = render_all(compare(Board(SMOKE, finished)), replace(SMOKE, name=SCRIPT, about=SCRIPT), "html")
    assert "&lt;script&gt;" in text
    assert "script" not in Outline(text).started
    assert {name for name, _ in Outline(text).attributes} == {
        *("class", "id", "scope", "colspan", "rowspan", "title", "aria-hidden"),
    }


def test_html_asks_nothing_of_the_network(comparisons):
    text = render_all(comparisons, PAPER, "html")
    assert not {"script", "link", "img", "iframe", "a"} & set(Outline(text).started)
    assert "url(" not in text
    assert "@import" not in text


def test_html_has_a_colour_for_every_step_in_light_and_dark():
    light, dark = stylesheet().split("prefers-color-scheme: dark")
    for step in range(NUM_STEPS + 1):
        for part, ramp in ((light, LIGHT), (dark, DARK)):
            assert f".a{step} {{ background-color: {background(step / NUM_STEPS, ramp)}; color: #" in part


def test_html_has_our_own_reading_in_the_tooltip_and_folded_beneath(comparisons):
    text = render("dihedral", comparisons, PAPER, "html")
    assert re.search(
        r'title="Best 0\.250, trial [0-9a-f]{16}\. Expected best of 3 trials 0\.250\. Mean 0\.250 ± 0\.000, 3 seeds at'
        r" rate 1e-5, chosen at 100 inputs\. Seeds that learn: 0 of 3 \(0\.00–0\.56\)\.",
        text,
    )
    assert "<small>±0.00 0 of 3 learn</small><small>1e-5</small><small>1.00</small>" in text[text.index("<details>") :]
    assert "<details>" not in render("dihedral", comparisons, PAPER, "html", reading="ours")
