"""Adaptive search over the settings of a trial: Optuna proposes points, ASHA prunes them, the store remembers.

A point is one choice of the varied settings, trained with several seeds. Its trials are ordinary trials in the same
store, so what a sweep has trained costs nothing here, and what a search has trained costs a sweep nothing.
"""
