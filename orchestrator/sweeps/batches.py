"""Sizes of the batches in which training data are drawn and trials are evaluated. Plans need them too. No torch."""

STEPS_PER_BLOCK = 64
"""Training steps whose data are drawn at once."""
TOKENS_AT_ONCE = 1 << 17
"""Tokens of all trials in a batch that a GPU evaluates: enough to keep it busy, few enough to hold all positions."""
FEWEST_AT_ONCE = 64
"""Samples in such a batch at least."""
