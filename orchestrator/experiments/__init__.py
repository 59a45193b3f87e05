"""One file per sweep, each the caption of the table or figure it reproduces.

A sweep has a `TITLE`, what it `REPRODUCES`, and `trials(scale, results)`: a pure function that yields checked trials.
`results` answers questions about finished trials; what it cannot answer yet is yielded as `Waiting`. Make both through
`scale`, and nothing else need be said about waiting.
"""
