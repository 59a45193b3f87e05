"""Tables and floats in LaTeX: every character is escaped, and pdflatex compiles them."""

import doctest
import itertools
import re
import shutil
import string
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from orch.analysis import latex_text
from orch.analysis.figures import Drawing
from orch.analysis.latex_table import MOST_LINES, latex_table
from orch.analysis.latex_text import escape, label
from orch.analysis.report.write import figure_float
from orch.cli import main
from orch.cli._output import write_table
from orch.store.bundled import BUNDLED

NASTY = r"""50% of $x_1^2 & {a}\b ~c #d "quoted" <e>|f| [g] *h* `i' -- --- ?` !`"""
NASTY += "− – — ± × † ‡ § → ≤ α Ω µ é ž 漢 😀 ² ½ ﬁ"
needs_pdflatex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


def compile_latex(folder: Path, *bodies: str) -> str:
    """Compile a document with these bodies and return pdflatex's log."""
    packages = sorted({name for body in bodies for name in re.findall(r"\\usepackage(?:\[table\])?\{(\w+)\}", body)})
    options = {"xcolor": "[table]"}
    lines = [r"\documentclass{article}", *(rf"\usepackage{options.get(name, '')}{{{name}}}" for name in packages)]
    document = "\n".join([*lines, r"\begin{document}", *bodies, r"\end{document}"])
    (folder / "document.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "document.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = run.stdout.decode(errors="replace")
    assert run.returncode == 0, log[-2000:]
    assert (folder / "document.pdf").stat().st_size > 1000
    return log


def orch(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_examples_in_docstrings_hold() -> None:
    results = doctest.testmod(latex_text)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("character", sorted(set(NASTY + string.printable) - set(string.whitespace)))
def test_no_character_is_left_that_means_something_to_latex_or_stops_it(character: str) -> None:
    found = escape(character)
    assert found
    assert found.isascii() or found <= "\u017e"
    commands = re.sub(r"\\[a-zA-Z]+|\\[%&#$_{}]|\$[^$]*\$", "", found)
    assert not set(commands.replace("{}", "").replace("{", "").replace("}", "")) & set("%&#$_~^\\<>|`")


def test_control_characters_and_line_breaks_become_spaces() -> None:
    assert escape("a\x1b\n\tb\x00c") == "a   b c"


def test_a_label_has_only_letters_digits_and_hyphens() -> None:
    assert label("Word problem: S_3 & é") == "word-problem-s-3"


def test_a_table_without_caption_is_a_bare_tabular_and_one_with_it_a_float() -> None:
    bare = latex_table(["a", "b"], [False, True], [["x_1", "−1"]])
    assert bare.splitlines()[1:] == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a & b \\",
        r"\midrule",
        r"x\_1 & $-$1 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    text = latex_table(["a"], [False], [["x"]], "What it is.", "My table")
    assert r"\caption{What it is.}\label{tab:my-table}" in text
    assert text.index(r"\begin{table}") < text.index(r"\begin{tabular}") < text.index(r"\end{table}")


def test_a_table_that_no_page_can_hold_breaks_across_pages() -> None:
    rows = [["x"]] * (MOST_LINES + 1)
    assert r"\begin{longtable}" in latex_table(["a"], [False], rows, "Long.", "long")
    assert r"\begin{longtable}" not in latex_table(["a"], [False], rows[:-1], "Long.", "long")


def test_a_number_below_zero_has_a_minus_sign_and_a_missing_one_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(pa.table({"score": [-0.5, None], "name": ["-a", None]}), "latex")
    assert capsys.readouterr().out.splitlines()[5:7] == [r"$-$0.5 & -a \\", r"-- & -- \\"]


def test_the_ending_tex_means_latex(tmp_path: Path) -> None:
    write_table(pa.table({"a": [1]}), output=str(tmp_path / "a.tex"))
    assert r"\begin{tabular}{r}" in (tmp_path / "a.tex").read_text()


@needs_pdflatex
def test_a_float_is_never_wider_than_the_text(tmp_path: Path) -> None:
    wide = latex_table(["heading"] * 12, [False] * 12, [["a long entry"] * 12], "Wide.", "wide")
    log = compile_latex(tmp_path, wide, latex_table(["a"], [False], [["x"]], "Narrow.", "narrow"))
    assert "Overfull" not in log


@needs_pdflatex
@pytest.mark.thorough
def test_pdflatex_compiles_any_text(tmp_path: Path) -> None:
    pairs = ["".join(pair) for pair in itertools.product("[]*-`'?!<>\"&\\", repeat=2)]
    rows = [[NASTY, "1"], *([pair, pair] for pair in pairs)]
    compile_latex(
        tmp_path,
        latex_table(["name " + NASTY, "2"], [False, True], rows[:40], NASTY, NASTY),
        latex_table(["name", "2"], [False, True], rows, "All of them.", "all"),
        latex_table(["name", "2"], [False, True], rows[:2]),
    )


@needs_pdflatex
@pytest.mark.thorough
def test_pdflatex_compiles_results_queries_reports_and_figures(tmp_path: Path) -> None:
    tables = [
        orch("results", "--store", BUNDLED, "--format", "latex", "--spread", "ci"),
        orch("results", "--store", BUNDLED, "--format", "latex", "--by", "model", "--metric", "accuracy_400"),
        orch("query", "SELECT model, max(ood_best) FROM cells GROUP BY ALL", "--store", BUNDLED, "--format", "latex"),
    ]
    folder = tmp_path / "figures"
    options = ("--store", BUNDLED, "--scale", "laptop", "--format", "latex", "--figures", str(folder), "--captions")
    tables.append(orch("report", "dihedral", "data-efficiency", *options))
    floats = sorted(folder.glob("*.tex"))
    assert {path.stem for path in floats} == {path.stem for path in folder.glob("*.pdf")} != set()
    for path in folder.glob("*.pdf"):
        shutil.copy(path, tmp_path)
    log = compile_latex(tmp_path, *tables, *(path.read_text() for path in floats))
    assert "lengths-dihedral-dihedral.pdf" in log


def test_a_figure_carries_its_title_its_caption_and_a_label() -> None:
    drawing = Drawing("lengths-mine-word_problem", "50% of S_3", "What it shows.", "mine", source=None)  # type: ignore[arg-type]
    text = figure_float(drawing)
    assert r"\caption{50\% of S\_3. What it shows.}\label{fig:lengths-mine-word-problem}" in text
    assert r"\includegraphics[width=\linewidth]{lengths-mine-word_problem.pdf}" in text
