"""Twenty trials that are real but tiny: five models on two tasks, two seeds each."""

import orch

cells = orch.grid(
    models=["bilinear", "lstm", "rnn", "rotation", "transformer"],
    tasks=[{"name": "modular_addition", "modulus": 3}, {"name": "state_machine", "modulus": 2}],
    learning_rates=1e-2,
    seeds=2,
    width=8,
    steps=20,
    eval_every=5,
    validation_samples=16,
    test_samples=16,
    test_length=20,
    batch_size=16,
)
