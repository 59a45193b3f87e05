"""The paper's figures and further ones, drawn from a board.

A figure is one file: its `draw` turns plain data into a matplotlib figure, and its `FIGURE` says for which sweeps it
is drawn and how its data come from the board. The gallery finds every file with a `FIGURE`. Drawing is thread-safe:
pyplot is not used, and a lock guards matplotlib's global settings.
"""

from orch.analysis.figures.figure import Drawing
from orch.analysis.figures.gallery import Gallery, figures
from orch.analysis.figures.saving import save, svg_element, to_bytes

__all__ = ["Drawing", "Gallery", "figures", "save", "svg_element", "to_bytes"]
