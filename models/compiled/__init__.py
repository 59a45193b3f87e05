"""Compiled kernels: the arithmetic of a training step on a CPU as machine code, made by numba.

Each has a twin in plain PyTorch, which is the one to read: `recurrence/`, `token_table.py`, and `head` in `network.py`.
`tests/models/test_compiled.py` compares the two. A kernel goes through the samples of one trial after the other, so a
trial's numbers do not depend on the other trials of its pack. Nothing here starts threads.
"""
