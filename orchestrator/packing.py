"""How many trials to train in one program."""

from orchestrator.trial import Trial

LIMIT = 9


def pack_size(trial: Trial, num_available: int, device: str) -> int:
    """The size that gives the most trials per hour."""
    if trial.model.name in ("mamba", "transformer") or trial.model.width > 64:
        return 1
    return min(num_available, LIMIT)
