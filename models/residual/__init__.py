"""Networks of residual blocks, which differ in how a block mixes positions: `config.py` (no torch) and `network.py`."""
