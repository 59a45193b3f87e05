"""How figures look: one colour, marker and line for each model everywhere, and type that can be read in print.

Colours are Okabe and Ito's, which the colour-blind can tell apart. Models of one family share a colour, darker the
larger the variant; markers and dashes tell them apart without any colour.
"""

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

INK, SOFT, FAINT = "#1a1a1a", "#6b6b6b", "#dcdcdc"
OURS, PUBLISHED = "#0072B2", "#D55E00"
TEXT_SIZE = 8.0

_SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so that figures are the same on every machine
    "font.size": TEXT_SIZE,
    "axes.titlesize": TEXT_SIZE,
    "axes.labelsize": TEXT_SIZE,
    "xtick.labelsize": TEXT_SIZE,
    "ytick.labelsize": TEXT_SIZE,
    "legend.fontsize": TEXT_SIZE,
    "figure.titlesize": 9.5,
    "figure.titleweight": "bold",
    "figure.labelsize": TEXT_SIZE,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "legend.frameon": False,
    "text.parse_math": False,  # names may hold a dollar sign
    "svg.fonttype": "path",  # outlines look alike everywhere; text would depend on the reader's fonts
    "svg.hashsalt": "orch",
    "savefig.dpi": 200,
}
_LOCK = threading.RLock()


@contextmanager
def _style() -> Iterator[None]:
    """Our settings on top of matplotlib's own defaults, whatever the user's are. They are global: one at a time."""
    import matplotlib

    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")}
    settings: Any = defaults | _SETTINGS
    with _LOCK, matplotlib.rc_context(settings):
        yield


def styled(function: Callable[P, T]) -> Callable[P, T]:
    """Runs with these settings, from any thread."""

    @functools.wraps(function)
    def wrapped(*arguments: P.args, **named: P.kwargs) -> T:
        with _style():
            return function(*arguments, **named)

    return wrapped


@dataclass(frozen=True, slots=True)
class Look:
    colour: str
    marker: str
    line: Any = "-"
    filled: bool = True

    @property
    def line_settings(self) -> dict[str, Any]:
        """For `Axes.plot`."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": 1.1,
            "marker": self.marker,
            "markersize": 3.8,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgecolor": self.colour,
            "markeredgewidth": 0.7,
        }


_DOTTED, _DASHED, _DASHDOT = (0, (1, 1.2)), (0, (3.5, 1.4)), (0, (4, 1.2, 1, 1.2))
_LOOKS = {
    ("bilinear", ""): Look("#000000", "o"),
    ("factored", ""): Look("#0072B2", "s"),
    ("block_diagonal", "1"): Look("#F0A070", "v", _DOTTED, filled=False),
    ("block_diagonal", "2"): Look("#E8833F", "<", _DASHED, filled=False),
    ("block_diagonal", "8"): Look("#D55E00", ">", _DASHDOT),
    ("block_diagonal", ""): Look("#A34700", "^"),
    ("rotation", ""): Look("#009E73", "D"),
    ("lstm", ""): Look("#CC79A7", "P"),
    ("rnn", ""): Look("#E69F00", "X", _DASHED, filled=False),
    ("mamba", "1"): Look("#8CCBEF", "h", _DOTTED, filled=False),
    ("mamba", "2"): Look("#56B4E9", "h", _DASHED, filled=False),
    ("mamba", ""): Look("#2383B8", "h"),
    ("transformer", "1"): Look("#A6A6A6", "*", _DOTTED, filled=False),
    ("transformer", "2"): Look("#808080", "*", _DASHED, filled=False),
    ("transformer", ""): Look("#595959", "*"),
}
_SPARE = [
    Look(colour, marker, line, filled)
    for line, filled in (("-", True), (_DASHED, False), (_DOTTED, False))
    for colour, marker in (("#882255", "p"), ("#999933", "d"), ("#332288", "H"), ("#44AA99", "8"))
]


def looks(models: Mapping[str, tuple[str, str]]) -> dict[str, Look]:
    """By label, given each label's model and variant. Models of a user's own share what is left, in order."""
    found: dict[str, Look] = {}
    spare = itertools.cycle(_SPARE)
    for label, (model, variant) in models.items():
        look = _LOOKS.get((model, variant)) or _LOOKS.get((model, ""))
        found[label] = next(spare) if look is None or look in found.values() else look
    return found
