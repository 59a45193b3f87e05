"""Clusters: the launcher files that `ray up` reads, what they say, whether it is right, and what it costs."""
