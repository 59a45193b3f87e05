"""What the models whose transition is linear in the embedding share: settings and the module. See `network.py`."""
