"""Shapes of markers for SVG, by the letters that matplotlib gives them: corners within a circle of radius 1."""

import math

Corners = list[tuple[float, float]]


def _polygon(num_corners: int, turn: float = 0.0, inner: float = 1.0) -> Corners:
    """Return a regular polygon with a corner at the top, turned by an angle.

    With `inner` below 1 it is a star: every second corner is that far from the middle.
    """
    found = []
    for number in range(num_corners):
        angle = turn + 2 * math.pi * number / num_corners - math.pi / 2
        radius = inner if number % 2 else 1.0
        found.append((radius * math.cos(angle), radius * math.sin(angle)))
    return found


_THIN = 0.35
_PLUS = [
    *((-_THIN, -1.0), (_THIN, -1.0), (_THIN, -_THIN), (1.0, -_THIN), (1.0, _THIN), (_THIN, _THIN)),
    *((_THIN, 1.0), (-_THIN, 1.0), (-_THIN, _THIN), (-1.0, _THIN), (-1.0, -_THIN), (-_THIN, -_THIN)),
]
_HALF = math.sqrt(0.5)
SHAPES: dict[str, Corners] = {
    "o": _polygon(16),
    "^": _polygon(3),
    "v": _polygon(3, math.pi),
    "<": _polygon(3, -math.pi / 2),
    ">": _polygon(3, math.pi / 2),
    "s": _polygon(4, math.pi / 4),
    "D": _polygon(4),
    "d": [(0.6 * x, y) for x, y in _polygon(4)],
    "p": _polygon(5),
    "h": _polygon(6),
    "H": _polygon(6, math.pi / 6),
    "8": _polygon(8, math.pi / 8),
    "*": _polygon(10, inner=0.4),
    "P": _PLUS,
    "X": [((x - y) * _HALF, (x + y) * _HALF) for x, y in _PLUS],
}
