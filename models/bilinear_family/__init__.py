"""Settings and the module that models share whose transition is linear in the embedding. See `network.py`."""
