"""The history of a search as a chart of text: a column for each point, in the order they were started."""

from collections.abc import Sequence

from orch.search.history import PointResult, PointState

HEIGHT = 8
WIDTH = 72
MARKS = {PointState.FINISHED: "●", PointState.PRUNED: "○", PointState.FAILED: "×"}


def draw(results: Sequence[PointResult], title: str) -> list[str]:
    """Draw finished points at their objective and pruned ones at their validation accuracy; of many, the last ones."""
    shown = [each for each in results if each.state is not PointState.INVALID][-(WIDTH // 2) :]
    scores = [_score(each) for each in shown]
    known = [score for score in scores if score is not None]
    if not known:
        return []
    low, high = min(0.0, *known), max(known)
    high = 1.0 if low >= 0.0 and high <= 1.0 else high
    rows = [[" "] * (2 * len(shown)) for _ in range(HEIGHT)]
    for place, (each, score) in enumerate(zip(shown, scores, strict=True)):
        share = 0.0 if score is None or high == low else (score - low) / (high - low)
        rows[HEIGHT - 1 - round(share * (HEIGHT - 1))][2 * place + 1] = MARKS[each.state]
    labels = [f"{high:.3g}", *[""] * (HEIGHT - 2), f"{low:.3g}"]
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} ┤{''.join(row).rstrip()}" for label, row in zip(labels, rows, strict=True)]
    legend = "● finished  ○ pruned, by validation accuracy" + "  × failed" * (None in scores)
    return [title, *lines, f"{'':>{margin}} └{'─' * 2 * len(shown)}", f"{'':>{margin}}  {legend}"]


def _score(result: PointResult) -> float | None:
    return result.value if result.state is PointState.FINISHED else result.validation
