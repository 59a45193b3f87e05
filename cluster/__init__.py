"""Clusters: launcher files for `ray up`, their checks and prices, and running commands on a cluster (`--on`)."""
