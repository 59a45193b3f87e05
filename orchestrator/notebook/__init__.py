"""Sweeps from Python: `orch.sweep(…)` in a script or a notebook, and the study that it returns."""
