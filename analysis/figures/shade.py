"""The colour and the digits that show an accuracy in a tile."""

from orch.analysis.tables.entries import decimals


def shade(accuracy: float) -> tuple[float, ...]:
    """Return the colour of an accuracy: pale at chance and below, dark when perfect."""
    from matplotlib import colormaps

    return colormaps["Blues"](0.03 + 0.87 * min(max(accuracy, 0.0), 1.0))


def text_on(face: tuple[float, ...]) -> str:
    """Return the colour of text on a background: black or white, whichever has the higher contrast."""
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in face[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"


def digits(accuracy: float) -> str:
    """Format an accuracy in four characters.

    >>> digits(0.984), digits(-0.004), digits(-0.02)
    ('0.98', '0.00', '−.02')
    """
    return decimals(accuracy).replace("−0", "−")
