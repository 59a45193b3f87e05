"""Experiments, one file for each sweep; its docstring is the caption of the table or figure it reproduces.

A file defines `TITLE`, `REPRODUCES` and `cells(scale, results)`, a pure function that yields cells of checked trials.
`results` answers questions about finished trials, or returns a `Waiting` if it cannot answer yet; cells made through
`scale` handle that. A sweep that is not part of `all` says `IN_ALL = False`.
"""
