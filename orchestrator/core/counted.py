"""Counted nouns in messages: `1 trial`, `2 trials`, `1,000 trials`."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and the noun that it counts, in the singular for one.

    >>> counted(1, "trial"), counted(2_000, "trial"), counted(0, "entry", "entries")
    ('1 trial', '2,000 trials', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
