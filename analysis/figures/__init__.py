"""The paper's figures and some more, drawn from a store: one file each, with a `draw` that takes plain rows.

Nothing here touches pyplot or matplotlib's global state for longer than a drawing takes: any thread may draw.
"""

from orch.analysis.figures.gallery import Drawing, Gallery, figures
from orch.analysis.figures.saving import save, svg_element, to_bytes

__all__ = ["Drawing", "Gallery", "figures", "save", "svg_element", "to_bytes"]
