"""An Arrow table as text: in columns as wide as there is room for, or, where there is too little, a row at a time."""

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from orch.cli._formats import column_names, is_number, rows, text

_GAP = 2
_NARROWEST = 8
"""A column of texts is not made narrower than this; one of numbers is never folded."""


def text_rows(table: pa.Table, width: int | None) -> Iterator[str]:
    """The head, then each row, with a line end after each line. `width` is the terminal's; None if there is none."""
    names = column_names(table)
    numbers = [is_number(kind) for kind in table.schema.types]
    found = [[text(value) for value in row] for row in rows(table)]
    widths = [len(name) for name in names]
    for row in found:
        widths = [max(widest, len(value)) for widest, value in zip(widths, row, strict=True)]
    fitted = widths if width is None else _fit(widths, numbers, width)
    if fitted is None:
        yield ""
        yield from (_record(number, names, row, width or 0) for number, row in enumerate(found, start=1))
        return
    yield _line(names, fitted, numbers) + "─" * (sum(fitted) + _GAP * (len(fitted) - 1)) + "\n"
    yield from (_line(row, fitted, numbers) for row in found)


def _fit(widths: Sequence[int], numbers: Sequence[bool], room: int) -> list[int] | None:
    """Widths that fit, the widest texts made narrower as far as they go; None if even that does not do."""
    fitted = list(widths)
    texts = [place for place, number in enumerate(numbers) if not number]
    for _ in range(sum(fitted) + _GAP * (len(fitted) - 1) - room):
        widest = max(texts, key=lambda place: fitted[place], default=None)
        if widest is None or fitted[widest] <= _NARROWEST:
            return None
        fitted[widest] -= 1
    return fitted


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    """One row, on as many lines as its longest text needs."""
    wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for place in range(max(map(len, wrapped))):
        pieces = [pieces[place] if place < len(pieces) else "" for pieces in wrapped]
        padded = [
            piece.rjust(width) if number else piece.ljust(width)
            for piece, width, number in zip(pieces, widths, numbers, strict=True)
        ]
        lines.append((" " * _GAP).join(padded).rstrip() + "\n")
    return "".join(lines)


def _record(number: int, names: Sequence[str], values: Sequence[str], room: int) -> str:
    margin = max(map(len, names)) + _GAP
    lines = [f"── row {number} ".ljust(min(room, 40), "─")]
    for name, value in zip(names, values, strict=True):
        first, *others = _wrapped(value, max(room - margin, 20))
        lines += [(name.ljust(margin) + first).rstrip(), *(" " * margin + other for other in others)]
    return "\n".join(lines) + "\n"


def _wrapped(words: str, width: int) -> list[str]:
    """In lines of at most `width`, broken after a space or a mark where that is possible."""
    lines = [""]
    for piece in re.split(r"(?<=[\s_,;:/])", words):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        while len(piece.rstrip()) > width:
            lines[-1], piece = piece[:width], piece[width:]
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
