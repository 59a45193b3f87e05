"""The paper's tables with our numbers and the published ones: their cells, captions, marks and colours."""

import subprocess
import sys

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
)
from orch.analysis.tables.colour import DARK, LIGHT, NUM_STEPS, background, contrast, ink, luminance
from orch.cli.report import print_disagreements
from orch.core.errors import UnknownName
from orch.sweeps.scales import LAPTOP, PAPER, SMOKE
from tests.analysis.invented import invented_results
from tests.analysis.spoiled import spoiled

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
