"""Style of all figures: settings of matplotlib, and a look for each model that is the same everywhere.

Models declare their looks in their `Config`. Colours are Okabe and Ito's, which colour-blind readers can distinguish;
variants of one model share a colour, darker the larger the variant; markers and dashes differ as well.
"""

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from orch.models.look import DASHED, DOTTED, SOLID, Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    "axes.facecolor": "none",  # the figure's own background shows, or that of a page
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
    "text.parse_math": False,  # names may contain a dollar sign
    "svg.fonttype": "path",  # outlines look the same everywhere; text would depend on the reader's fonts
    "svg.hashsalt": "orch",
    "pdf.fonttype": 42,  # journals refuse the default, Type 3
    "savefig.dpi": 200,
}
_LOCK = threading.RLock()


@contextmanager
def styled() -> Iterator[None]:
    """Decorate a function that draws, so that it uses these settings instead of the user's.

    Settings of matplotlib are global, so only one thread draws at a time.
    """
    import matplotlib

    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith("backend")}
    settings: Any = defaults | _SETTINGS
    with _LOCK, matplotlib.rc_context(settings):
        yield


def titled_figure(title: str, width: float, height: float, margin: float = 0.08) -> "Figure":
    """Return an empty figure with its title at the top left; sizes are inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.suptitle(title, x=margin / width, y=1 - margin / height, ha="left", va="top")
    return figure


_SPARE = [
    Look(colour, marker, line, filled)
    for line, filled in ((SOLID, True), (DASHED, False), (DOTTED, False))
    for colour, marker in (("#882255", "p"), ("#999933", "d"), ("#332288", "H"), ("#44AA99", "8"))
]


def distinct_looks(preferred: Mapping[str, Look | None]) -> dict[str, Look]:
    """Return a look for each label: the preferred one, or a spare one if there is none or another label has it."""
    found: dict[str, Look] = {}
    spare = itertools.cycle(_SPARE)
    for label, look in preferred.items():
        found[label] = next(spare) if look is None or look in found.values() else look
    return found
