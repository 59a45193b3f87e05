"""Text that is safe to show on a terminal."""


def printable(text: str) -> str:
    """Replace every control character by a space, so that text from a store cannot control the terminal.

    >>> printable("\\x1b[31mred\\ttext")
    ' [31mred text'
    """
    return "".join(character if character.isprintable() else " " for character in text)


def printable_lines(text: str) -> list[str]:
    """Split a text into lines, each of them safe to show on a terminal."""
    return [printable(line) for line in text.splitlines()]
