"""Reports as files. Each is written aside and renamed, so that a file is never half written."""

from pathlib import Path

from orch.analysis.figures import Gallery, save
from orch.analysis.report.collect import StudyReport
from orch.analysis.report.page import page
from orch.core.atomic_write import write_atomically
from orch.core.errors import OrchError


def write_page(path: Path, report: StudyReport, gallery: Gallery) -> None:
    write_text(path, page(report, gallery))


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
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise OrchError(f"{path} cannot be written ({error.strerror}): name another place with --output") from error
