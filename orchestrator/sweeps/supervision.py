"""The positions at which samples have labels: at their end, at every input, or at some. No torch."""

FINAL, EVERY, SPARSE = "final", "every", "sparse:"


def label_interval(supervision: str) -> int | None:
    """Return k if every k-th input has a label, and None if only the end of a sample has one.

    >>> label_interval("final"), label_interval("every"), label_interval("sparse:5")
    (None, 1, 5)
    """
    if supervision == FINAL:
        return None
    return 1 if supervision == EVERY else int(supervision.removeprefix(SPARSE))


def supervision_problems(supervision: str) -> list[str]:
    """List what is wrong with a supervision, as sentences that name the remedy.

    >>> supervision_problems("sparse:1")
    ["supervision 'sparse:1' is every under another name: use every"]
    """
    if supervision in (FINAL, EVERY):
        return []
    if supervision == f"{SPARSE}1":
        return [f"supervision {supervision!r} is every under another name: use every"]
    interval = supervision.removeprefix(SPARSE)
    # One way to write a number, because the text identifies the trial.
    if supervision.startswith(SPARSE) and interval.isdecimal() and str(int(interval)) == interval and int(interval) > 1:
        return []
    return [f"supervision {supervision!r} is unknown: use final, every, or sparse:k with a number k, such as sparse:5"]
