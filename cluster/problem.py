"""A finding of `orch cluster check`: one sentence that names the problem and the remedy."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    text: str
    fatal: bool


def error(text: str) -> Problem:
    """Create a problem that keeps the cluster from starting, from working, or from being safe."""
    return Problem(text, fatal=True)


def warning(text: str) -> Problem:
    """Create a problem with which the cluster works, but perhaps not as intended."""
    return Problem(text, fatal=False)
