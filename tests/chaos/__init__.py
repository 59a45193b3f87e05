"""Chaos: sweeps on real stores while processes die, disks fail and networks part, each round from a seed.

`python -m tests.chaos --seed 7 --rounds 10` runs rounds; see docs/chaos.md. A round makes a new store, injects one
fault into processes that run the same twenty small trials, lets an undisturbed process finish the work, and checks
the invariants (`invariants`). Faults are found by name in `faults/`, one file each.
"""
