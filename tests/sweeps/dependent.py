"""A sweep whose trials depend on results: each model is trained again at its best learning rate."""

from orch.sweeps.cell import Cell

TITLE = "Smaller budgets at the best learning rate"
REPRODUCES = "nothing: it is for tests"

MODELS = ("rnn", "lstm")


def cells(scale, results):
    parity = scale.task("modular_addition", 2)
    for model in MODELS:
        cell = scale.cell(parity, scale.model(model))
        yield cell
        best = results.best_learning_rate(cell.trials)
        for steps in (5, 10):
            yield Cell([scale.trial(parity, scale.model(model), learning_rate=best, seed=7, steps=steps)])
