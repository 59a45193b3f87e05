"""An automaton from a file: a vending machine that counts cents up to 20 and can be emptied, against five models.

A drink costs 20 cents; what is paid beyond that stays in the machine, and a refund empties it. The table is in
vending.csv: rows are states, columns are inputs, entries are next states. The task is to tell how many cents are in the
machine after a sequence of inputs. It counts modulo 4, which positive eigenvalues cannot, and it forgets, which
rotations cannot: orch tasks automaton --table examples/vending.csv says what theory knows about it.

    orch sweep examples/automaton_study.py
"""

import orch

cells = orch.grid(
    models=["mamba", {"name": "block_diagonal", "block_size": 1}, "rotation", "bilinear", "lstm"],
    tasks=[orch.automaton("vending.csv")],
    learning_rates=(1e-2, 1e-3),
    seeds=2,
    width=64,
    steps=1000,
    test_length=100,
)
