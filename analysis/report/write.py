"""Files of a report: its text, and its figures."""

from pathlib import Path

from orch.analysis.figures import Drawing, Gallery, save
from orch.analysis.latex_text import escape, label
from orch.core.atomic_write import write_atomically
from orch.core.errors import OrchError


def write_figures(folder: Path, gallery: Gallery, captions: bool = False) -> int:
    """Write every figure as SVG, PDF and PNG, and return how many figures there are.

    With captions, NAME.tex beside them is a LaTeX float with the PDF, its caption and the label `fig:NAME`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for drawing in gallery.drawings:
            figure = drawing.figure
            for kind in ("svg", "pdf", "png"):
                save(figure, folder / f"{drawing.name}.{kind}")
            if captions:
                write_atomically(folder / f"{drawing.name}.tex", figure_float(drawing).encode())
    except OSError as error:
        raise OrchError(f"figures cannot be written to {folder} ({error.strerror}): name another folder") from error
    return len(gallery.drawings)


def figure_float(drawing: Drawing) -> str:
    """Return a LaTeX float that includes a figure's PDF, with its caption and a label."""
    lines = [
        r"% Needs, before \begin{document}: \usepackage{graphicx}",
        r"\begin{figure}[htbp]",
        r"\centering",
        rf"\includegraphics[width=\linewidth]{{{drawing.name}.pdf}}",
        rf"\caption{{{escape(f'{drawing.title}. {drawing.caption}')}}}\label{{fig:{label(drawing.name)}}}",
        r"\end{figure}",
        "",
    ]
    return "\n".join(lines)


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, which is never half written."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise OrchError(f"{path} cannot be written ({error.strerror}): name another place with --output") from error
