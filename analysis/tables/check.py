"""Where ours differ from the paper's by more than a tolerance, in words."""

from collections.abc import Iterable, Sequence

from orch.analysis.agreement import agreement, disagreements
from orch.analysis.comparison import Comparison
from orch.analysis.published import Key, PublishedCell
from orch.analysis.tables.axes import additive_name, split_name
from orch.analysis.tables.entries import decimals, signed


def print_disagreements(comparisons: Sequence[Comparison], tolerance: float) -> int:
    """Say how far ours agree and list where they do not; how many numbers that is."""
    import click

    from orch.cli._rich_tables import print_rows

    found = disagreements(comparisons, tolerance)
    if found:
        print_rows(disagreement_rows(found), title=f"Numbers that differ by more than {tolerance:g}")
    click.echo(f"{agreement(comparisons, tolerance)}")
    return len(found)


def disagreement_rows(comparisons: Iterable[Comparison]) -> list[dict[str, str]]:
    """One row for each, with the trial of ours that did best."""
    return [_row(each) for each in comparisons]


def _row(comparison: Comparison) -> dict[str, str]:
    assert comparison.score is not None, "what has none of ours does not differ"
    assert comparison.difference is not None, "what has none of ours does not differ"
    also = dict.fromkeys(decimals(number.accuracy) for number in comparison.also)
    published = decimals(comparison.published.accuracy)
    others = [text for text in also if text != published]
    return {
        "table": comparison.published.table,
        "cell": in_words(comparison.published, comparison.reading),
        "published": f"{published} (also {', '.join(others)})" if others else published,
        "ours": decimals(comparison.score.best),
        "difference": signed(comparison.difference),
        "trial": comparison.score.best_trial,
        "remark": comparison.summary.remark,
    }


def in_words(number: PublishedCell, reading: str = "") -> str:
    """What a published number is about."""
    key = number.key
    parts = [key.model_title, key.task_type.title_of(key.modulus)]
    if key.train_examples:
        parts.append(f"{key.train_examples} examples of length {key.train_length}")
    if key.additive != Key._field_defaults["additive"]:
        parts.append(f"additive {additive_name(key.additive)}")
    if reading:
        parts.append(reading)
    return ", ".join([*parts, split_name(number)[0].lower() + split_name(number)[1:]])
