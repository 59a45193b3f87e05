"""A sweep whose trials depend on results: each model goes on with the learning rate that was best for it."""

TITLE = "Smaller budgets at the best learning rate"
REPRODUCES = "nothing: it is for tests"

MODELS = ("rnn", "lstm")


def trials(scale, results):
    parity = scale.task("modular_addition", 2)
    for model in MODELS:
        cell = list(scale.cell(parity, scale.model(model)))
        yield from cell
        best = results.best_learning_rate(cell)
        for steps in (5, 10):
            yield scale.trial(parity, scale.model(model), learning_rate=best, seed=7, steps=steps)
