"""Files of a report: its text, and its figures."""

from pathlib import Path

from orch.analysis.figures import Gallery, save
from orch.core.atomic_write import write_atomically
from orch.core.errors import OrchError


def write_figures(folder: Path, gallery: Gallery) -> int:
    """Write every figure as SVG and PNG, and return how many figures there are."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for drawing in gallery.drawings:
            for kind in ("svg", "png"):
                save(drawing.figure, folder / f"{drawing.name}.{kind}")
    except OSError as error:
        raise OrchError(f"figures cannot be written to {folder} ({error.strerror}): name another folder") from error
    return len(gallery.drawings)


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, which is never half written."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise OrchError(f"{path} cannot be written ({error.strerror}): name another place with --output") from error
