"""Results for other tools: one file per target.

A target is a file of this package with an `EXPORTER` (see `exporter.py`), found by its name. Packages that only one
target needs are imported in its file alone, when it is used. Training knows nothing of any of them.
"""

from orch.analysis.exports.export import Exported, export, find_exporters

__all__ = ["Exported", "export", "find_exporters"]
