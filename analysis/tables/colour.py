"""Accuracies as colours from pale to deep, fit for print, for colour-blind readers and for light and dark pages.

Lightness alone distinguishes low from high, so a grey copy reads the same. On a dark page the ramp starts from
the page's darkness instead. The text on a colour is black or white, whichever is easier to read.
"""

NUM_STEPS = 20
TEXT, GRAPHICS = 4.5, 3.0
"""Contrast that WCAG 2 asks for at level AA: of text, and of lines and markers."""

Ramp = tuple[str, ...]
LIGHT: Ramp = ("#fbf8e3", "#a5d6bd", "#3d93a8", "#1b3a6b")
DARK: Ramp = ("#1d2733", "#23506b", "#3c8a8f", "#a5d6bd")


def step_of(value: float) -> int:
    """Return the step of the ramp for an accuracy; one below chance has the step of chance."""
    return round(NUM_STEPS * min(1.0, max(0.0, value)))


def background(value: float, ramp: Ramp = LIGHT) -> str:
    """Return the colour of an accuracy as `#rrggbb`."""
    place = step_of(value) / NUM_STEPS * (len(ramp) - 1)
    lower = min(int(place), len(ramp) - 2)
    pairs = zip(_channels(ramp[lower]), _channels(ramp[lower + 1]), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (place - lower)):02x}" for low, high in pairs)


def ink(colour: str) -> str:
    """Return black or white, whichever has more contrast with a colour."""
    return max(("#000000", "#ffffff"), key=lambda text: contrast(text, colour))


def darkened(colour: str, ratio: float, page: str = "#ffffff") -> str:
    """Return a colour of the same hue that has at least this contrast with a pale page.

    >>> darkened("#0072B2", 3.0), darkened("#f0e442", 3.0)
    ('#0072b2', '#9c952b')
    """
    found, share = colour.lower(), 1.0
    while contrast(found, page) < ratio:
        share -= 0.01
        found = "#" + "".join(f"{round(share * channel):02x}" for channel in _channels(colour))
    return found


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, which WCAG asks to be 4.5 or more for text."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 for black to 1 for white."""
    parts = [channel / 255 for channel in _channels(colour)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
