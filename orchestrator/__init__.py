"""orch: sweeps of small sequence models, from one trial in this process to a cluster."""
