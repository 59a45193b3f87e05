"""Text for people: safe to show on a terminal, and whole sentences."""


def printable(text: str) -> str:
    """Replace every control character by a space, so that text from a store cannot control the terminal.

    >>> printable("\\x1b[31mred\\ttext")
    ' [31mred text'
    """
    return "".join(character if character.isprintable() else " " for character in text)


def printable_lines(text: str) -> list[str]:
    """Split a text into lines, each of them safe to show on a terminal."""
    return [printable(line) for line in text.splitlines()]


def sentence(text: str) -> str:
    """Return a title as a sentence: with a full stop, unless it ends like a sentence.

    >>> sentence("Models of five kinds"), sentence("Does it keep parity?")
    ('Models of five kinds.', 'Does it keep parity?')
    """
    text = text.rstrip()
    return text if text.endswith((".", "?", "!")) else f"{text}."
