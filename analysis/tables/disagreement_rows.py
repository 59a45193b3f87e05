"""Numbers of ours that differ from the published ones, described in rows."""

from collections.abc import Iterable

from orch.analysis.comparison import Comparison
from orch.analysis.published import Key, PublishedCell
from orch.analysis.tables.axes import additive_name, split_name
from orch.analysis.tables.entries import decimals, signed


def disagreement_rows(comparisons: Iterable[Comparison]) -> list[dict[str, str]]:
    """Describe each comparison in a row, with our best trial."""
    return [_row(each) for each in comparisons]


def _row(comparison: Comparison) -> dict[str, str]:
    score = comparison.score
    assert score is not None, "a number without ours does not differ"
    assert score.best is not None, "a number without ours does not differ"
    assert comparison.difference is not None, "a number without ours does not differ"
    published, others = decimals(comparison.published.accuracy), map(decimals, comparison.other_values)
    return {
        "table": comparison.published.table,
        "cell": describe_number(comparison.published, comparison.reading),
        "published": f"{published} (also {', '.join(others)})" if comparison.other_values else published,
        "ours": decimals(score.best),
        "difference": signed(comparison.difference),
        "trial": score.best_trial or "",
        "remark": comparison.summary.remark,
    }


def describe_number(number: PublishedCell, reading: str = "") -> str:
    """Describe what a published number measures: model, task, settings and length."""
    key = number.key
    parts = [key.model_title, key.task_type.title_of(key.modulus)]
    if key.train_examples:
        parts.append(f"{key.train_examples} examples of length {key.train_length}")
    if key.additive != Key._field_defaults["additive"]:
        parts.append(f"additive {additive_name(key.additive)}")
    if reading:
        parts.append(reading)
    return ", ".join([*parts, split_name(number)[0].lower() + split_name(number)[1:]])
