"""The paper's tables, ours and the published value side by side.

`layout` decides what stands where, once; `terminal`, `markdown`, `latex` and `html` each write that down.
"""

from orch.analysis.tables.check import disagreement_rows, print_disagreements
from orch.analysis.tables.entries import READINGS
from orch.analysis.tables.html import stylesheet
from orch.analysis.tables.layout import PaperTable, lay_out
from orch.analysis.tables.render import FORMATS, render, render_all

__all__ = [
    "FORMATS",
    "READINGS",
    "PaperTable",
    "disagreement_rows",
    "lay_out",
    "print_disagreements",
    "render",
    "render_all",
    "stylesheet",
]
