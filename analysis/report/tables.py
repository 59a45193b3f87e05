"""The tables of a report without its page: the paper's with ours beside it, and those of other sweeps."""

from orch.analysis.report.collect import StudyReport
from orch.analysis.report.sweep_table import render_sweep, sweep_table
from orch.analysis.tables import render_all


def render_tables(report: StudyReport, format: str, reading: str = "paper") -> str:
    """Write every published table that the report has comparisons for, then one for each sweep that has none."""
    parts = [render_all(report.comparisons, report.scale, format, reading)] if report.comparisons else []
    others = [sweep for sweep in report.sweeps if not report.published_tables(sweep.name)]
    return "\n".join([*parts, *(render_sweep(sweep_table(each, report.scale), format) for each in others)])
