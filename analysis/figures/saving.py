"""Figures as files, the same bytes for the same figure.

Text is saved as outlines: an SVG that names fonts looks different wherever they are missing, and labels would overlap.
"""

import io
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from orch.analysis.figures.style import styled
from orch.core.atomic_write import write_atomically
from orch.core.errors import UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
"""Neither times nor versions."""

_REFERENCES = re.compile(r'\bid="|url\(#|href="#')


@styled
def to_bytes(figure: "Figure", kind: str) -> bytes:
    """`svg` or `png`."""
    if kind not in _METADATA:
        raise UnknownName("kind of figure file", kind, _METADATA)
    written = io.BytesIO()
    figure.savefig(written, format=kind, metadata=_METADATA[kind])
    return written.getvalue()


def save(figure: "Figure", path: str | Path) -> None:
    """As SVG or PNG, by the ending of the path."""
    path = Path(path)
    write_atomically(path, to_bytes(figure, path.suffix.removeprefix(".")))


def svg_element(figure: "Figure", name: str, title: str) -> str:
    """To stand within a page. `name` keeps its ids apart from those of the page's other figures."""
    text = to_bytes(figure, "svg").decode()
    element = _REFERENCES.sub(lambda match: f"{match[0]}{name}-", text[text.index("<svg") :])
    return element.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)
