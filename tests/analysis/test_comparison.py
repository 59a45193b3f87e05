"""The comparison of published numbers with ours, and their agreement."""

from collections import Counter
from dataclasses import replace

import pytest

from orch.analysis.aggregate import METRICS, CellStatus
from orch.analysis.agreement import agreement, disagreements
from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.published import TABLES
from orch.sweeps.scales import LAPTOP, PAPER, SCALES, SMOKE
from tests.analysis.invented import invented_results, invented_row


@pytest.fixture(scope="module")
def planned():
    """Comparisons at paper scale, with nothing finished."""
    return compare(Board(PAPER))


def published_again(comparisons, table, earlier):
    """The numbers of a table that repeat one of an earlier table, and whether with the same value."""
    found = {each.published: each.repeats for each in comparisons if each.repeats is not None}
    pairs = [(new, old) for new, old in found.items() if (new.table, old.table) == (table, earlier)]
    return Counter(new.accuracy == old.accuracy for new, old in pairs)


def num_distinct(comparisons):
    return len({each.distinct for each in comparisons})


def test_what_the_paper_publishes_twice_counts_once(planned):
    assert published_again(planned, "factors", "main") == {True: 24}
    assert published_again(planned, "additive", "main") == {True: 24, False: 6}
    assert published_again(planned, "param_matched", "main") == {True: 59, False: 13}
    summary = {each.published for each in planned if each.published.table == "additive_summary"}
    repeated = {each.published for each in planned if each.repeats is not None}
    assert summary <= repeated
    assert len(repeated) == 30 + 24 + 30 + 72
    assert len({each.published for each in planned}) == 1242
    assert num_distinct(planned) == 1242 - 156 == 1086


def test_the_summary_of_additive_terms_repeats_the_long_table_number_for_number(planned):
    long = {
        (each.published.key, each.published.split): each.published.accuracy
        for each in planned
        if each.published.table == "additive"
    }
    short = [each.published for each in planned if each.published.table == "additive_summary"]
    assert short
    assert all(long[number.key, number.split] == number.accuracy for number in short)


def test_a_number_published_twice_knows_its_other_value_in_both_places(planned):
    for each in planned:
        if each.repeats is not None:
            assert each.repeats in each.also
        assert each.published not in each.also
    main = {each.published: each for each in planned if each.published.table == "main"}
    for each in planned:
        if each.repeats is not None and each.repeats.table == "main":
            assert each.published in main[each.repeats].also


def test_the_other_value_is_known_when_only_one_table_is_compared(planned):
    alone = compare(Board(PAPER), tables=["param_matched"])
    assert num_distinct(alone) == 288
    assert all(each.repeats is None for each in alone)
    assert sum(len(each.also) > 0 for each in alone) == 72


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_only_what_is_published_twice_counts_once_at_every_scale(scale):
    for each in compare(Board(scale)):
        assert each.repeats is None or each.repeats in each.also


def test_what_a_scale_does_not_plan_is_not_compared():
    assert {each.published.key.modulus for each in compare(Board(SMOKE))} == set(SMOKE.moduli)
    assert {each.published.key.modulus for each in compare(Board(LAPTOP))} == set(LAPTOP.moduli)


def test_two_readings_are_compared_with_one_published_number():
    found = [each for each in compare(Board(PAPER), tables=["additive"]) if each.published.key.additive == "input"]
    assert {each.reading for each in found} == {"normalised", "not normalised"}
    assert num_distinct(found) == len({each.published for each in found}) == len(found) / 2


def test_ours_is_the_best_and_the_difference_is_ours_less_the_published():
    first = compare(Board(SMOKE), tables=["dihedral"])[0]
    (trial_id,) = first.trial_ids
    assert (first.ours, first.difference, first.summary.status) == (None, None, CellStatus.MISSING)
    row = invented_row(trial_id, validation_accuracy=0.75)
    found = compare(Board(SMOKE, {trial_id: row}), tables=["dihedral"])[0]
    assert (found.published.accuracy, found.ours, found.difference) == (1.0, 0.75, -0.25)


def test_a_failed_trial_that_finished_later_is_not_failed():
    first = compare(Board(SMOKE), tables=["dihedral"])[0]
    (trial_id,) = first.trial_ids
    assert compare(Board(SMOKE, failed={trial_id}), ["dihedral"])[0].summary.status is CellStatus.FAILED
    done = compare(Board(SMOKE, {trial_id: invented_row(trial_id)}, {trial_id}), ["dihedral"])[0]
    assert (done.summary.status, done.summary.num_failed) == (CellStatus.COMPLETE, 0)


def test_results_equal_to_the_published_agree_everywhere():
    comparisons = compare(Board(PAPER, invented_results(PAPER)))
    found = agreement(comparisons, 0.0)
    assert (found.num_distinct, found.num_ours, found.num_within) == (1086, 1086, 1086)
    assert (found.num_without, found.num_partial, found.num_better, found.num_worse) == (0, 0, 0, 0)
    assert disagreements(comparisons, 0.0) == []


def test_each_side_of_the_tolerance_is_counted_and_only_what_lies_beyond_is_listed():
    finished = invented_results(SMOKE)
    numbers = [each for each in compare(Board(SMOKE, finished), tables=["dihedral"]) if each.published.split == "ood"]
    for each, change in zip(numbers, (-0.3, -0.02, 0.02, 0.3), strict=False):
        finished[each.trial_ids[0]]["ood_accuracy"] = each.published.accuracy + change
    del finished[numbers[4].trial_ids[0]]
    comparisons = compare(Board(SMOKE, finished), tables=["dihedral"])
    found = agreement(comparisons, 0.02)
    assert (found.num_distinct, found.num_better, found.num_worse) == (32, 1, 1)
    assert (found.num_ours, found.num_without) == (30, 2)
    listed = disagreements(comparisons, 0.02)
    assert {each.published for each in listed} == {numbers[0].published, numbers[3].published}
    assert len(disagreements(comparisons, 0.01)) == 4


def test_a_number_without_ours_is_no_disagreement_but_is_counted():
    comparisons = compare(Board(SMOKE))
    assert disagreements(comparisons, 0.0) == []
    assert agreement(comparisons).num_without == num_distinct(comparisons)
    assert "332 without ours" in str(agreement(comparisons))


def test_a_number_that_rests_on_some_of_its_trials_is_compared_and_counted_as_partial():
    finished = invented_results(LAPTOP)
    first = compare(Board(LAPTOP, finished), tables=["dihedral"])[0]
    for trial_id in first.trial_ids[1:]:
        del finished[trial_id]
    found = agreement(compare(Board(LAPTOP, finished), tables=["dihedral"]))
    # The same trials are compared with a number in validation and one at length 500.
    assert (found.num_partial, found.num_ours, found.num_distinct) == (2, 48, 48)


def test_one_reading_counts_for_a_whole_table_the_one_that_meets_more_of_it():
    finished = invented_results(SMOKE)
    numbers = compare(Board(SMOKE, finished), tables=["additive"])
    readings = {
        name: [each for each in numbers if each.reading == name and each.published.key.additive == "input"]
        for name in ("normalised", "not normalised")
    }
    for name, wrong in (("normalised", (0, 1)), ("not normalised", (2,))):
        for place in wrong:
            each = readings[name][place]
            metric = METRICS[each.published.split]
            finished[each.trial_ids[0]][metric] = each.published.accuracy - 0.5
    found = compare(Board(SMOKE, finished), tables=["additive"])
    (listed,) = disagreements(found, 0.05)
    assert listed.published == readings["not normalised"][2].published
    assert listed.reading == "not normalised", "though the other reading has this very number"
    assert (agreement(found).num_worse, agreement(found).num_better) == (1, 0)


def test_of_two_published_values_the_nearer_one_counts():
    finished = invented_results(PAPER)
    twice = [
        each
        for each in compare(Board(PAPER, finished))
        if each.repeats is not None
        and each.repeats.table == "main"
        and abs(each.repeats.accuracy - each.published.accuracy) > 0.2
    ]
    (again,) = twice
    assert (again.repeats.accuracy, again.published.accuracy) == (0.41, 0.12)
    for trial_id in again.trial_ids:
        finished[trial_id]["ood_accuracy"] = 0.12
    assert disagreements(compare(Board(PAPER, finished)), 0.05) == []
    (alone,) = disagreements(compare(Board(PAPER, finished), tables=["main"]), 0.05)
    assert alone.published == again.repeats


def test_every_table_can_be_compared_alone():
    sizes = {name: num_distinct(compare(Board(PAPER), tables=[name])) for name in TABLES}
    assert sum(sizes.values()) == 1242


def test_a_comparison_is_counted_by_the_number_it_repeats():
    first, second = compare(Board(SMOKE), tables=["dihedral"])[:2]
    assert num_distinct([first, second]) == 2
    assert num_distinct([first, replace(second, repeats=first.published)]) == 1
