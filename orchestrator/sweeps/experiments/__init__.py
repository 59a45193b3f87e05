"""One file per sweep, each the caption of the table or figure it reproduces.

A sweep has a `TITLE`, what it `REPRODUCES`, and `cells(scale, results)`: a pure function that yields cells of checked
trials. `results` answers questions about finished trials; what it cannot answer yet it returns as `Waiting`. Make cells
through `scale`, and nothing else need be said about waiting.
"""
