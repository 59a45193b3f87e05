"""The paper's tables with our numbers and the published ones, in four renderings."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.published import TABLES
from orch.analysis.tables import (
    FORMATS,
    READINGS,
    disagreement_rows,
    lay_out,
    render,
    render_all,
    stylesheet,
)
from orch.analysis.tables.colour import DARK, LIGHT, NUM_STEPS, background, contrast, ink, luminance
from orch.analysis.tables.latex import MOST_LINES, PREAMBLE
from orch.analysis.tables.latex import escape as escape_latex
from orch.analysis.tables.markdown import escape as escape_markdown
from orch.cli.report import print_disagreements
from orch.core.errors import UnknownName
from orch.sweeps.scales import LAPTOP, PAPER, SMOKE
from tests.analysis.invented import invented_results

SCRIPT = "<script>alert('&')</script>"


def spoiled(scale):
    """Comparisons of which some are missing, failed, partial, diverged, or far off: one row of the dihedral table."""
    finished = invented_results(scale)
    validation = [
        each for each in compare(Board(scale, finished), tables=["dihedral"]) if each.published.split == "validation"
    ]
    missing, failed, partial, diverged, off = (each.trial_ids for each in validation[:5])
    for trial_id in (*missing, *failed, *partial[1:]):
        del finished[trial_id]
    finished[diverged[0]]["stop_reason"] = "diverged"
    for trial_id in off:
        finished[trial_id]["validation_accuracy"] = 0.25
    return compare(Board(scale, finished, {*failed, partial[1]}))


@pytest.fixture(scope="module")
def comparisons():
    return spoiled(PAPER)


@pytest.fixture(scope="module")
def entries(comparisons):
    """The cells of the spoiled row's validation."""
    return lay_out("dihedral", comparisons, PAPER).sections[0].rows[0].entries[0]


# The layout


def test_rows_and_columns_stand_in_the_papers_order(comparisons):
    main = lay_out("main", comparisons, PAPER)
    assert [section.heading for section in main.sections] == ["Modular addition", "State machine", "Modular arithmetic"]
    assert [row.labels[0] for row in main.sections[0].rows] == [
        "Bilinear", "Factored", "Block 1 (real diagonal)", "Block 2", "Block 8", "Block 64", "Rotation", "LSTM", "RNN",
        "Mamba (1 layer)", "Mamba (2 layers)", "Mamba (4 layers)",
        "Transformer (1 layer)", "Transformer (2 layers)", "Transformer (4 layers)",
    ]  # fmt: skip
    assert [(group.heading, group.columns) for group in main.groups] == [
        ("Validation, length 2–10", ("2", "3", "5", "10", "25", "50")),
        ("Length 500", ("2", "3", "5", "10", "25", "50")),
    ]


def test_factors_and_the_frozen_network_have_rows_of_their_own(comparisons):
    factors = lay_out("factors", comparisons, PAPER).sections[0].rows
    ranks = ["1", "2", "4", "8", "16", "64", "128", "256", "512", "1024", "2048", "full"]
    assert [row.labels for row in factors] == [(rank,) for rank in ranks]
    frozen = lay_out("frozen_parity", comparisons, PAPER)
    states = [
        (terms, state)
        for terms in ("input", "input + constant", "constant")
        for state in ("normalised", "not normalised")
    ]
    assert [row.labels for row in frozen.sections[0].rows] == [*states, ("none", "")]
    assert {group.columns for group in frozen.groups} == {("10", "20", "50")}


def test_two_readings_of_additive_terms_are_two_rows_beside_the_same_published_numbers(comparisons):
    table = lay_out("additive", comparisons, PAPER)
    rows = {row.labels: row.entries for row in table.sections[0].rows}
    assert len(rows) == 3 * (3 * 2 + 1)
    first, second = (rows["Block 2", "input", state] for state in ("normalised", "not normalised"))
    assert [[entry.lines[1] for entry in group] for group in first] == [
        [entry.lines[1] for entry in group] for group in second
    ]
    assert [group.heading for group in table.groups] == ["Parity", "Modular addition", "State machine"]
    assert any("two rows" in note for note in table.notes)


@pytest.mark.parametrize("name", TABLES)
def test_every_published_number_has_a_cell(name, comparisons):
    table = lay_out(name, comparisons, PAPER)
    readings = [each for each in comparisons if each.published.table == name]
    assert len(table.entries) == len(readings)
    assert all(entry.lines[0] != "–" for entry in table.entries)


@pytest.mark.parametrize("name", TABLES)
def test_every_caption_names_the_published_statistic_and_ours(name, comparisons):
    count = "6 trials" if name == "frozen_parity" else "9 trials"
    caption = lay_out(name, comparisons, PAPER).caption
    assert f"Published: {TABLES[name].statistic}" in caption
    assert f"the best of {count}, over learning rates and seeds" in caption
    assert "at paper scale" in caption
    ours = lay_out(name, comparisons, PAPER, reading="ours").caption
    assert "the learning rate chosen at 100 inputs" in ours
    assert "the mean and the standard deviation over its seeds" in ours


def test_a_cell_shows_ours_the_published_value_and_the_difference(entries):
    off = entries[4]
    assert (off.lines, off.value, off.beyond) == (("0.25", "1.00", "−0.75"), 0.25, True)
    diverged = entries[3]
    assert (diverged.lines, diverged.beyond) == (("1.00", "1.00", "±0.00"), False)


def test_missing_failed_partial_and_diverged_cells_are_marked(entries):
    missing, failed, partial, diverged, off = entries[:5]
    assert (missing.lines, missing.value) == (("?", "1.00", ""), None)
    assert (failed.lines, failed.value) == (("×", "1.00", ""), None)
    assert (partial.marks, diverged.marks, off.marks) == ("*‡", "†", "")
    assert "Partial: 1 of 9 trials, 1 failed." in partial.tooltip
    assert "1 diverged." in diverged.tooltip


def test_the_legend_explains_every_mark_that_occurs_and_no_other(comparisons):
    assert set(lay_out("dihedral", comparisons, PAPER).legend) == set("?×*†‡")
    assert set(lay_out("factors", comparisons, PAPER).legend) == {"§"}
    assert lay_out("frozen_parity", comparisons, PAPER).legend == {}


def test_our_own_reading_shows_mean_spread_seeds_and_rate(comparisons):
    table = lay_out("dihedral", comparisons, PAPER, reading="ours")
    missing, _, partial, _, off, _ = table.sections[0].rows[0].entries[0]
    assert table.lines == ("ours", "spread", "seeds", "rate", "published")
    assert off.lines == ("0.25", "±0.00", "0 of 3 learn", "1e-5", "1.00")
    assert partial.lines == ("1.00", "", "1 of 1 learn", "1e-3", "1.00")
    assert missing.lines == ("?", "", "", "", "1.00")


def test_numbers_published_twice_show_both_values_in_both_tables(comparisons):
    matched = lay_out("param_matched", comparisons, PAPER)
    shown = [entry for entry in matched.entries if entry.also]
    assert len(shown) == 13
    assert sum(entry.marks_published == "§" for entry in matched.entries) == 59
    arithmetic = next(section for section in matched.sections if section.heading == "Modular arithmetic")
    blocks = next(row for row in arithmetic.rows if row.labels == ("Block 8",))
    assert (blocks.entries[1][2].lines[1], blocks.entries[1][2].also) == ("0.12", "also 0.41")
    main = lay_out("main", comparisons, PAPER)
    assert sum(entry.also != "" for entry in main.entries) == 13 + 6


def test_the_counts_of_the_tables_and_of_all_of_them(comparisons):
    sizes = {name: lay_out(name, comparisons, PAPER).agreement.num_distinct for name in TABLES}
    assert sizes["param_matched"] == 288
    assert sum(sizes.values()) == 1242
    text = render_all(comparisons, PAPER, "markdown")
    assert "each number once: 1,086 published numbers, ours for 1,082" in text
    assert "1,081 within 0.05, 0 better, 1 worse; 4 without ours" in text


def test_columns_and_rows_that_a_scale_does_not_plan_are_left_out_and_named():
    comparisons = compare(Board(SMOKE))
    main = lay_out("main", comparisons, SMOKE)
    assert {group.columns for group in main.groups} == {("2", "3")}
    assert any("left out: modulus or states 5, 10, 25, 50." in note for note in main.notes)
    factors = lay_out("factors", comparisons, SMOKE)
    assert [row.labels for row in factors.sections[0].rows] == [("1",), ("full",)]
    assert any("states 5, 10, 25, 50; factors 2, 4, 8" in note for note in factors.notes)
    assert not any("left out" in note for note in lay_out("main", compare(Board(PAPER)), PAPER).notes)


def test_a_single_cell_that_is_not_planned_is_a_dash():
    comparisons = compare(Board(SMOKE), tables=["dihedral"])
    table = lay_out("dihedral", comparisons[1:], SMOKE)
    assert table.entries[0].lines == ("–", "", "")
    assert table.legend["–"] == "not planned at this scale"


def test_a_table_of_which_nothing_is_planned_is_not_shown():
    assert lay_out("main", [], SMOKE) is None
    assert render("main", [], SMOKE) == ""


def test_unknown_tables_readings_and_formats_are_named():
    for given in ({"name": "mian"}, {"reading": "theirs"}, {"format": "pdf"}):
        with pytest.raises(UnknownName, match=next(iter(given.values()))):
            render(**({"name": "main", "comparisons": [], "scale": SMOKE} | given))


@pytest.mark.thorough
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_shows_every_table_its_numbers_and_its_notes(format, reading):
    comparisons = spoiled(LAPTOP)
    text = render_all(comparisons, LAPTOP, format, reading)
    for name, table in TABLES.items():
        assert table.title in text
        assert render(name, comparisons, LAPTOP, format, reading) in text
    for word in ("0.25", "Block 1 (real diagonal)", "not normalised", "10, 25, 50", "also 0.01", "some of its trials"):
        assert word in text


# Colours


@pytest.mark.parametrize("ramp", [LIGHT, DARK])
def test_text_is_legible_on_every_colour(ramp):
    colours = [background(step / NUM_STEPS, ramp) for step in range(NUM_STEPS + 1)]
    assert min(contrast(ink(colour), colour) for colour in colours) >= 4.5


@pytest.mark.parametrize(("ramp", "sign"), [(LIGHT, -1), (DARK, 1)])
def test_lightness_alone_tells_low_from_high(ramp, sign):
    lights = [sign * luminance(background(step / NUM_STEPS, ramp)) for step in range(NUM_STEPS + 1)]
    assert lights == sorted(lights)
    assert len(set(lights)) == NUM_STEPS + 1


def test_what_is_below_chance_or_above_perfect_has_the_colour_of_the_end():
    assert (background(-0.3), background(1.2)) == (LIGHT[0], LIGHT[-1])


# Terminal


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


# Markdown


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


# LaTeX


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


# HTML


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


# Disagreements


def test_disagreements_are_listed_in_words_with_the_trial_of_ours(comparisons, capsys):
    assert print_disagreements(comparisons, 0.05) == 1
    printed = capsys.readouterr().out
    assert "Bilinear, Dihedral group of 25, validation" in printed
    assert "−0.75" in printed
    assert "4 without ours" in printed


def test_nothing_is_listed_when_all_agree(capsys):
    assert print_disagreements(compare(Board(SMOKE, invented_results(SMOKE))), 0.05) == 0
    assert capsys.readouterr().out.startswith("332 published numbers, ours for 332: 332 within 0.05, 0 better, 0 worse")


def test_a_disagreement_says_what_else_is_published_and_what_is_partial():
    finished = invented_results(PAPER)
    compared = compare(Board(PAPER, finished))
    twice = next(each for each in compared if each.repeats and each.repeats.accuracy != each.published.accuracy)
    for trial_id in twice.trial_ids[1:]:
        del finished[trial_id]
    finished[twice.trial_ids[0]]["validation_accuracy"] = 0.0
    found = next(each for each in compare(Board(PAPER, finished)) if each.published == twice.published)
    (row,) = disagreement_rows([found])
    assert row["table"] == "param_matched"
    assert row["cell"] == "Block 8, State machine, 25 states, validation, length 2–10"
    assert (row["published"], row["ours"], row["difference"]) == ("0.60 (also 0.48)", "0.00", "−0.60")
    assert (row["trial"], row["remark"]) == (twice.trial_ids[0], "partial: 1 of 9 trials")


def test_a_cell_of_the_frozen_network_is_named_with_its_training_set():
    first = compare(Board(SMOKE, invented_results(SMOKE)), tables=["frozen_parity"])[0]
    (row,) = disagreement_rows([first])
    assert row["cell"] == "Block-diagonal, Parity, 2 examples of length 10, additive input, normalised, length 400"


def test_tables_import_nothing_heavy():
    heavy = {"torch", "ray", "pyarrow", "pandas", "matplotlib", "duckdb", "numpy", "rich"}
    code = f"import sys, analysis.tables; print(sorted({heavy!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
