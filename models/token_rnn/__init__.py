"""Settings and the module that the RNN and the LSTM share. See `network.py`."""
