"""The paper's tables, with our numbers and the published ones.

`layout` arranges a table once; `terminal`, `markdown`, `latex` and `html` each render that layout.
"""

from orch.analysis.tables.disagreement_rows import disagreement_rows
from orch.analysis.tables.entries import READINGS
from orch.analysis.tables.html import stylesheet
from orch.analysis.tables.layout import PaperTable, lay_out
from orch.analysis.tables.render import FORMATS, render, render_all

__all__ = ["FORMATS", "READINGS", "PaperTable", "disagreement_rows", "lay_out", "render", "render_all", "stylesheet"]
