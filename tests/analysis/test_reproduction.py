"""The reproduction: which published numbers count as attempted and met, each counted once."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from orch.analysis import load
from orch.analysis.aggregate import METRICS
from orch.analysis.agreement import TOLERANCE, agreement, is_attempted
from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.report.page import reproduction_section
from orch.analysis.reproduction import ReproductionState, reproduction
from orch.analysis.views import REPRODUCED, TALLIES, reproduced_table, tally_table
from orch.cli import main
from orch.cli import reproduction as command
from orch.core.errors import OrchError, UnknownName
from orch.store import Store
from orch.sweeps.experiments import factors
from orch.sweeps.scales import LAPTOP, PAPER
from orch.sweeps.selection import LEARNED, Results
from tests.analysis.finished import finish
from tests.analysis.invented import invented_results, invented_row


@pytest.fixture(scope="module")
def planned():
    """Comparisons at paper scale and at the test length, with nothing finished."""
    return [each for each in compare(Board(PAPER)) if each.published.split == "ood"]


def first(planned, **wanted):
    return next(each for each in planned if all(getattr(each.published, name) == wanted[name] for name in wanted))


def with_rows(comparison, *accuracies, rates=PAPER.learning_rates, **values):
    """Return the comparison with one finished trial for each accuracy, each with the next learning rate."""
    rows = {
        trial_id: invented_row(trial_id, rate, ood_accuracy=accuracy, **values)
        for trial_id, accuracy, rate in zip(comparison.trial_ids, accuracies, rates, strict=False)
    }
    return next(
        each
        for each in compare(Board(PAPER, rows), tables=[comparison.published.table])
        if (each.published, each.reading) == (comparison.published, comparison.reading)
    )


def outcomes(comparisons, **options):
    return [each.outcome for each in reproduction(comparisons, **options).cells]


def test_a_number_is_attempted_once_every_learning_rate_ended(planned):
    low = next(each for each in planned if each.published.accuracy < LEARNED)
    assert low.learning_rates == set(PAPER.learning_rates)
    assert not is_attempted(with_rows(low))
    assert not is_attempted(with_rows(low, 0.1, 0.1))
    assert is_attempted(with_rows(low, 0.1, 0.1, 0.1))
    assert is_attempted(with_rows(low, 0.1, 0.1, 0.1, stop_reason="early_stop"))
    assert not is_attempted(with_rows(low, 0.1, 0.1, 0.1, rates=[1e-3] * 3)), "three seeds of one rate are not enough"


def test_a_trial_that_diverged_did_not_end_as_it_should(planned):
    low = next(each for each in planned if each.published.accuracy < LEARNED)
    found = with_rows(low, *[low.published.accuracy] * 3, stop_reason="diverged")
    assert not is_attempted(found)
    assert outcomes([found]) == [ReproductionState.BEGUN]


def test_what_is_published_as_learned_is_attempted_as_soon_as_one_trial_has_learned(planned):
    high = first(planned, accuracy=1.0)
    assert not is_attempted(with_rows(high, 0.94))
    assert is_attempted(with_rows(high, LEARNED))
    assert not is_attempted(with_rows(first(planned, accuracy=0.94), 0.95)), "the other rates may still be better"


def test_ours_are_better_as_soon_as_one_trial_is(planned):
    below = first(planned, accuracy=0.94)
    assert outcomes([with_rows(below, 1.0)]) == [ReproductionState.BETTER]
    assert outcomes([with_rows(below, 0.95)]) == [ReproductionState.BEGUN]


def test_one_that_reached_it_in_validation_alone_has_not_reached_it_at_the_length_of_the_test(planned):
    found = with_rows(first(planned, accuracy=1.0), 0.2, validation_accuracy=1.0)
    assert outcomes([found]) == [ReproductionState.BEGUN]


@pytest.mark.parametrize(
    ("accuracy", "outcome"),
    [(0.94, "within"), (0.89, "within"), (0.99, "within"), (0.88, "worse"), (1.0, "better")],
)
def test_the_best_of_what_was_attempted_is_within_better_or_worse(planned, accuracy, outcome):
    found = with_rows(first(planned, accuracy=0.94), 0.0, accuracy, 0.1)
    assert outcomes([found]) == [outcome]
    assert outcomes([found], tolerance=0.5) == ["within"]


def test_nothing_finished_is_not_begun(planned):
    found = reproduction(planned)
    assert {each.outcome for each in found.cells} == {ReproductionState.NOT_BEGUN}
    assert (found.total.num_published, found.total.num_attempted, found.total.num_begun) == (600, 0, 0)


def test_every_number_of_a_split_counts_once_in_one_table():
    comparisons = compare(Board(PAPER, invented_results(PAPER)))
    found = {split: reproduction(comparisons, split, 0.0) for split in METRICS}
    assert {split: each.total.num_within for split, each in found.items()} == {"validation": 486, "ood": 600}
    for each in found.values():
        assert sum(tally.num_published for tally in each.tallies) == each.total.num_published
        assert sum(tally.num_within_learned for tally in each.tallies) == each.total.num_within_learned
    high = [cell for cell in found["ood"].cells if cell.comparison.published.accuracy >= 0.95]
    assert found["ood"].total.num_within_learned == len(high) > 100


def test_a_split_that_does_not_exist_is_named(planned):
    with pytest.raises(UnknownName, match="ood"):
        reproduction(planned, "odd")


def test_of_two_readings_the_attempted_one_counts_even_if_the_other_is_nearer(planned):
    pair = [each for each in planned if each.published.table == "additive" and each.reading][:2]
    assert pair[0].published == pair[1].published
    published = pair[0].published.accuracy
    assert published < 0.5
    far, near = with_rows(pair[0], *[published + 0.3] * 3), with_rows(pair[1], published)
    [cell] = reproduction([far, near]).cells
    assert (cell.comparison.reading, cell.outcome) == (pair[0].reading, "better")
    complete = with_rows(pair[1], *[published] * 3)
    [cell] = reproduction([far, complete]).cells
    assert (cell.comparison.reading, cell.outcome) == (pair[1].reading, "within")
    [cell] = reproduction([pair[0], near]).cells
    assert (cell.comparison.reading, cell.outcome) == (pair[1].reading, "begun")


def test_one_reading_counts_for_a_whole_table_even_where_the_other_is_nearer(planned):
    numbers = [each for each in planned if each.published.table == "frozen_parity" and each.published.accuracy < 0.1]
    rates = sorted(numbers[0].learning_rates, reverse=True)
    readings = {name: [each for each in numbers if each.reading == name] for name in ("normalised", "not normalised")}
    rows = {}
    for name, right in (("normalised", 1), ("not normalised", 3)):
        for place, each in enumerate(readings[name][:4]):
            accuracy = each.published.accuracy if place < right or (name, place) == ("normalised", 3) else 1.0
            for trial_id, rate in zip(each.trial_ids[::3], rates, strict=True):
                rows[trial_id] = invented_row(trial_id, rate, ood_accuracy=accuracy)
    found = reproduction(compare(Board(PAPER, rows), tables=["frozen_parity"]))
    assert {cell.comparison.reading for cell in found.cells} == {"", "not normalised"}
    assert (found.total.num_within, found.total.num_better) == (3, 1)


def test_the_report_and_the_reproduction_count_the_same_reading_of_a_table(planned):
    rows = {}
    for each in planned:
        if each.published.table == "frozen_parity" and each.reading:
            accuracy = 1.0 if each.reading == "normalised" else 0.04
            rates = [rate for rate in sorted(each.learning_rates) for _ in range(3)]
            for trial_id, rate in zip(each.trial_ids, rates, strict=True):
                rows[trial_id] = invented_row(trial_id, rate, ood_accuracy=accuracy)
    found = compare(Board(PAPER, rows), tables=["frozen_parity"])
    counted, shown = reproduction(found).total, agreement(found)
    assert (counted.num_within, counted.num_better, counted.num_worse) == (
        shown.num_within,
        shown.num_better,
        shown.num_worse,
    )
    assert (counted.num_worse, counted.num_better) == (2, 0), "0.87 and 0.74 are worse, not better"


def test_worse_is_final_only_when_no_rate_is_left_however_small_the_tolerance(planned):
    high = first(planned, accuracy=1.0)
    assert outcomes([with_rows(high, 0.97)]) == [ReproductionState.WITHIN]
    assert outcomes([with_rows(high, 0.97)], tolerance=0.01) == [ReproductionState.BEGUN]
    assert outcomes([with_rows(high, 0.97, 0.97, 0.97)], tolerance=0.01) == [ReproductionState.WORSE]


def test_a_number_published_twice_counts_in_the_first_table_with_the_nearer_value(planned):
    again = next(
        each
        for each in planned
        if each.repeats is not None and (each.repeats.accuracy, each.published.accuracy) == (0.41, 0.12)
    )
    rows = {
        trial_id: invented_row(trial_id, PAPER.learning_rates[place // 3], ood_accuracy=0.12)
        for place, trial_id in enumerate(again.trial_ids)
    }
    found = reproduction(compare(Board(PAPER, rows)))
    [cell] = found.having([ReproductionState.WITHIN])
    assert (cell.table, cell.comparison.published.table) == ("main", again.published.table)
    [row] = reproduced_table([cell]).to_pylist()
    assert (row["table"], row["published"], row["also"]) == ("main", 0.12, "0.41 in main")
    assert [tally.table for tally in found.tallies if tally.num_attempted] == ["main"]


def test_the_sentence_tells_the_total(planned):
    high, low = first(planned, accuracy=1.0), first(planned, accuracy=0.94)
    found = reproduction([with_rows(high, 1.0), with_rows(low, 0.1, 0.1, 0.1), planned[-1]])
    assert str(found) == (
        "2 of 3 published test numbers attempted: 1 within 0.05, 1 of them published at 0.95 or more; 0 better, 1 worse"
    )
    begun = reproduction([with_rows(high, 0.1)])
    assert str(begun).endswith("0 worse; 1 more are begun, short of their budget or diverged")


def test_a_row_names_the_trials_it_rests_on_the_best_first(planned):
    low = first(planned, accuracy=0.94)
    found = with_rows(low, 0.1, 0.9, 0.2)
    [row] = reproduced_table(reproduction([found]).cells).to_pylist()
    ids = low.trial_ids
    assert row["trials"].split() == [ids[1], ids[2], ids[0]]
    assert (row["ours"], row["learning_rate"], row["steps_trained"], row["stop_reason"]) == (0.9, 1e-4, 1000, "budget")
    assert row["difference"] == pytest.approx(-0.04)
    assert (row["additive"], row["train_examples"], row["train_length"]) == (None, None, None)


def test_what_has_no_trials_has_no_row_and_no_rows_are_still_a_table(planned):
    assert reproduced_table(reproduction(planned).cells).num_rows == 0
    assert reproduced_table([]).schema.names == REPRODUCED.names


def test_the_last_tally_is_the_sum_of_the_others():
    found = reproduction(compare(Board(LAPTOP, invented_results(LAPTOP))), tolerance=0.0)
    *tables, total = tally_table(found).to_pylist()
    assert total["table"] == "total"
    for name in TALLIES.names[1:]:
        assert total[name] == sum(row[name] for row in tables)
    assert total["published"] == total["attempted"] == total["within"] > 0


def test_the_report_has_a_table_for_each_split():
    html = reproduction_section(compare(Board(LAPTOP, invented_results(LAPTOP))))
    assert html.count("<table") == 2
    assert "published test numbers attempted" in html
    assert "published validation numbers attempted" in html


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Factored models of laptop size: one learned, one worse with every rate, one begun."""
    store = Store.open(tmp_path_factory.mktemp("reproduction") / "runs")
    cells = [cell for cell in factors.cells(LAPTOP, Results.none()) if cell.example.task.modulus == 2]
    learned, worse, begun = cells[-3:]
    finish(store, learned.trials[0], ood=1.0)
    for trial in worse.trials:
        finish(store, trial, ood=0.3)
    finish(store, begun.trials[0], ood=0.3)
    return store


def orch(*arguments, expect=0):
    result = CliRunner().invoke(main, ["reproduction", *arguments])
    assert result.exit_code == expect, result.output
    return result


def test_the_command_offers_what_the_library_knows():
    assert set(command.SPLITS) == set(METRICS)
    assert {*command.OUTCOMES, "not begun"} == set(ReproductionState)
    [tolerance] = [each for each in command.reproduction.params if each.name == "tolerance"]
    assert tolerance.default == TOLERANCE


def test_the_command_prints_the_counts_and_a_summary(store):
    result = orch("--store", store.uri, "--scale", "laptop")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert rows[-1]["table"] == "total"
    counts = {name: int(rows[-1][name]) for name in ("attempted", "within", "within_learned", "worse", "begun")}
    assert counts == {"attempted": 2, "within": 1, "within_learned": 1, "worse": 1, "begun": 1}
    assert "At laptop scale, 2 of" in result.stderr
    assert "At laptop scale, 2 of" in orch("--store", store.uri, "--scale", "laptop", "--format", "table").stdout


def test_the_command_counts_validation_apart(store):
    row = json.loads(
        orch("--store", store.uri, "--scale", "laptop", "--split", "validation", "--format", "json").stdout
    )
    assert (row[-1]["attempted"], row[-1]["within"], row[-1]["begun"]) == (3, 3, 0)


@pytest.mark.parametrize(("listed", "found"), [("within", 1), ("worse", 1), ("begun", 1), ("better", 0), ("all", 3)])
def test_the_command_lists_numbers_by_what_became_of_them(store, listed, found):
    shown = orch("--store", store.uri, "--scale", "laptop", "--list", listed, "--format", "json").stdout
    rows = json.loads(shown)
    assert len(rows) == found
    assert listed == "all" or {row["outcome"] for row in rows} <= {listed}
    done = store.done()
    assert all(trial_id in done for row in rows for trial_id in row["trials"].split())


def test_a_larger_tolerance_takes_in_what_was_worse(store):
    rows = json.loads(orch("--store", store.uri, "--scale", "laptop", "--tolerance", "1", "--format", "json").stdout)
    assert (rows[-1]["within"], rows[-1]["worse"]) == (2, 0)


def test_the_list_can_be_written_to_a_file(store, tmp_path):
    output = tmp_path / "worse.md"
    orch("--store", store.uri, "--scale", "laptop", "--list", "worse", "--output", str(output))
    assert output.read_text().startswith("| outcome | table |")


def test_the_study_counts_the_same(store):
    assert load(store.uri).reproduction("laptop").total.num_attempted == 2
    assert load(store.uri).reproduction().total.num_attempted == 0


def test_without_a_store_there_is_nothing_to_count(tmp_path):
    with pytest.raises(OrchError, match="there are no results at"):
        load(tmp_path / "none").reproduction()
