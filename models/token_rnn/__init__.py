"""What the RNN and the LSTM share: settings and the module. See `network.py`."""
