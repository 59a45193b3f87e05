"""The settings in which cells differ."""

from orch.analysis.differing_settings import differing_settings, distinguish


def test_cells_are_described_by_the_settings_that_differ_within_their_group() -> None:
    cells = [("rnn", {"width": 8, "steps": 50}), ("rnn", {"width": 16, "steps": 50}), ("lstm", {"width": 8})]
    assert differing_settings(cells) == {"rnn": ["width"], "lstm": []}
    assert distinguish(cells) == ["width 8", "width 16", ""]


def test_a_setting_that_only_some_cells_have_differs() -> None:
    assert distinguish([("a", {"batch_size": 4}), ("a", {})]) == ["batch size 4", "batch size None"]
