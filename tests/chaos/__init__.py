"""Chaos: sweeps on real stores while processes die, disks fail and networks part, each round from a seed.

`python -m tests.chaos --seed 7 --rounds 10` runs rounds; see docs/chaos.md. A round makes a new store, lets one fault
loose on processes that run the same twenty small trials, lets an undisturbed process finish the work, and compares
everything with what must hold (`invariants`). Faults are found by name in `faults/`, one file each.
"""
