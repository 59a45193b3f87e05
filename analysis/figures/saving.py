"""Writing figures to files. The same figure always gives the same bytes.

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

_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
"""Metadata without times and versions, which would make files differ."""

_REFERENCES = re.compile(r'\bid="|url\(#|href="#')


@styled()
def to_bytes(figure: "Figure", kind: str, background: str = "auto") -> bytes:
    """Return the bytes of a figure as a file of a kind: `pdf`, `png` or `svg`.

    The background is the figure's own by default, and `none` lets a page show through.
    """
    if kind not in _METADATA:
        raise UnknownName("kind of figure file", kind, _METADATA)
    written = io.BytesIO()
    figure.savefig(written, format=kind, metadata=_METADATA[kind], facecolor=background)
    return written.getvalue()


def save(figure: "Figure", path: str | Path) -> None:
    """Save a figure as PDF, PNG or SVG, depending on the ending of the path."""
    path = Path(path)
    write_atomically(path, to_bytes(figure, path.suffix.removeprefix(".")))


def svg_element(figure: "Figure", name: str, title: str) -> str:
    """Return a figure as an element of a page; `name` makes its ids differ from those of other figures."""
    text = to_bytes(figure, "svg", background="none").decode()
    element = _REFERENCES.sub(lambda match: f"{match[0]}{name}-", text[text.index("<svg") :])
    return element.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)
