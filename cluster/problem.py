"""What `orch cluster check` finds: one sentence that names the problem and the remedy."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    text: str
    fatal: bool


def error(text: str) -> Problem:
    """The cluster would not come up, not work, or not be safe."""
    return Problem(text, fatal=True)


def warning(text: str) -> Problem:
    """It would work, but perhaps not as meant."""
    return Problem(text, fatal=False)
