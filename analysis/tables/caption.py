"""The caption of a table, with the published statistic and ours, and the notes below it."""

from collections.abc import Iterable, Iterator, Sequence

from orch.analysis.aggregate import where_chosen
from orch.analysis.comparison import Comparison
from orch.analysis.published import TABLES, VALIDATION, published_cells
from orch.analysis.tables.axes import AXES
from orch.analysis.tables.entries import DIFFERENCE, TableStyle
from orch.sweeps.scales import Scale


def caption(comparisons: Sequence[Comparison], scale: Scale, style: TableStyle) -> str:
    """Return the caption, which names the published statistic and ours."""
    table = TABLES[comparisons[0].published.table]
    counts = sorted({each.summary.num_planned for each in comparisons})
    trials = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) + f" trial{'s' * (counts[-1] != 1)}"
    one_length = all(each.published.split != VALIDATION for each in comparisons)
    length = f" at length {table.test_length}" if one_length else ""
    chosen = where_chosen(each.summary.chosen_at for each in comparisons) or "short of the test"
    return (
        f"Accuracy{length}, where 0 is chance and 1 perfect. Published: {table.statistic}."
        f" Ours, at {scale.name} scale ({scale.about}): {style.statistic.format(trials=trials, chosen=chosen)}."
    )


def notes(comparisons: Sequence[Comparison], scale: Scale, style: TableStyle, tolerance: float) -> Iterator[str]:
    """Yield the notes below a table, each a sentence or more."""
    name = comparisons[0].published.table
    if TABLES[name].note:
        yield TABLES[name].note
    if any(each.reading for each in comparisons):
        yield (
            "With additive terms it matters whether the state is normalised, which the paper does not say: ours stand"
            " in two rows beside the same published number. For agreement one of the two counts, the same for the whole"
            " table: the one that meets more of its numbers."
        )
    yield from _published_again(comparisons)
    if left_out := [*_columns_left_out(name, comparisons), *_rows_left_out(name, comparisons)]:
        yield f"Not planned at {scale.name} scale, and left out: {'; '.join(left_out)}."
    if DIFFERENCE in style.lines:
        yield f"Differences beyond {tolerance:g} are bold."


def _published_again(comparisons: Iterable[Comparison]) -> Iterator[str]:
    again = {each.published: each for each in comparisons if each.also}
    if again:
        tables = ", ".join(dict.fromkeys(number.table for each in again.values() for number in each.also))
        num_other = sum(bool(each.other_values) for each in again.values())
        values = f"{num_other:,} of them with another value" if num_other else "all with the same value"
        yield (
            f"{len(again):,} of these numbers are published elsewhere too ({tables}), {values}: each counts once in"
            " all, by the value that comes nearer."
        )


def _columns_left_out(name: str, comparisons: Iterable[Comparison]) -> Iterator[str]:
    axes = AXES[name]
    everywhere = dict.fromkeys((axes.column(number), axes.group(number)) for number in published_cells(name))
    planned = {(axes.column(each.published), axes.group(each.published)) for each in comparisons}
    missing: dict[str, list[str]] = {}
    for column, group in everywhere:
        if (column, group) not in planned:
            missing.setdefault(column, []).append(group)
    if missing:
        known = {column for column, _ in planned}
        texts = (f"{column} ({', '.join(groups)})" if column in known else column for column, groups in missing.items())
        yield f"{axes.columns.lower()} {', '.join(texts)}"


def _rows_left_out(name: str, comparisons: Iterable[Comparison]) -> Iterator[str]:
    axes = AXES[name]
    planned = {axes.labels(each.published, "") for each in comparisons}
    rows = dict.fromkeys(axes.labels(number, "") for number in published_cells(name))
    missing = [" ".join(labels).strip() for labels in rows if labels not in planned]
    if missing:
        yield f"{axes.headings[0].lower()} {', '.join(missing)}"
