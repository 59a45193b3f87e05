"""HTML from plain values. Whatever comes from outside is escaped here, once."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: Any) -> str:
    """A value as HTML: escaped, unless it is markup of our own."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else escape(str(value))


def element(name: str, *children: Any, **attributes: Any) -> Markup:
    """`class_` is written `class`; an attribute of None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{''.join(text(child) for child in children)}</{name}>")


def join(pieces: Iterable[Any], between: str = "") -> Markup:
    return Markup(text(between).join(text(piece) for piece in pieces))


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[str] = ()) -> Markup:
    """Columns named in `numbers` are set flush right."""
    right = {headers.index(name) for name in numbers}

    def row(kind: str, values: Sequence[Any]) -> Markup:
        cells = (
            element(kind, value, class_="number" if position in right else None)
            for position, value in enumerate(values)
        )
        return element("tr", *cells)

    head = element("thead", row("th", headers))
    body = element("tbody", *(row("td", values) for values in rows))
    return element("div", element("table", head, body, class_="plain"), class_="wide")
