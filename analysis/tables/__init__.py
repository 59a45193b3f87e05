"""The paper's tables, with ours and the published value side by side.

`layout` decides once where everything stands; `terminal`, `markdown`, `latex` and `html` each write it down.
"""

from orch.analysis.tables.check import disagreement_rows
from orch.analysis.tables.entries import READINGS
from orch.analysis.tables.html import stylesheet
from orch.analysis.tables.layout import PaperTable, lay_out
from orch.analysis.tables.render import FORMATS, render, render_all

__all__ = ["FORMATS", "READINGS", "PaperTable", "disagreement_rows", "lay_out", "render", "render_all", "stylesheet"]
