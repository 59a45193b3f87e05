"""The paper's tables, ours and the published value side by side.

`layout` decides what stands where, once; `terminal`, `markdown`, `latex` and `html` each write that down.
"""

from analysis.tables.check import disagreement_rows, print_disagreements
from analysis.tables.html import stylesheet
from analysis.tables.layout import PaperTable, lay_out
from analysis.tables.reading import READINGS
from analysis.tables.render import FORMATS, render, render_all

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
