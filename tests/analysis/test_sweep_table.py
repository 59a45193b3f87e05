"""The table of a sweep without published numbers, in every format."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.store import Store
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from orch.usercode import name_sweeps
from tests.analysis.finished import finish

STUDY = """
from dataclasses import dataclass

import orch
from orch.core.settings import setting
from orch.sweeps.cell import Cell
from orch.tasks.modular_addition import ModularAddition


@dataclass(frozen=True, kw_only=True, slots=True)
class WordProblem(ModularAddition):
    \"\"\"Addition under the names of groups.\"\"\"

    name = "word_problem"
    title = "Word problem"
    group: str = setting("S3", "name of the group")

    @property
    def summary(self):
        return self.group


TITLE = "Word problems at 50% of the cost"
REPRODUCES = "nothing"


def cells(scale, results):
    for group in ("S_3", "Z_6"):
        yield Cell(
            [
                orch.Trial(
                    task=WordProblem(modulus=6, group=group), model=scale.model("lstm"), steps=10, learning_rate=rate,
                    init_seed=seed, data_seed=seed, curve_lengths=(10, 20), test_length=40,
                )
                for rate in (1e-2, 1e-3) for seed in (0, 1)
            ]
        )
"""


@pytest.fixture
def study(tmp_path: Path) -> tuple[str, str]:
    """Return a file with a study of one's own, and a store with the results of its first cell."""
    file = tmp_path / "words.py"
    file.write_text(STUDY)
    named = name_sweeps([str(file)])
    [name], catalogue = named.names, named.catalogue
    store = Store.open(tmp_path / "runs").with_settings_of(catalogue)
    first, *_ = catalogue.sweeps[name].cells(SMOKE, Results.none())
    for trial in first.trials:
        best = trial.learning_rate == 1e-2
        finish(store, trial, ood=0.2 * trial.init_seed + (0.5 if best else 0.0), at_100=0.9 if best else 0.1)
    return str(file), store.location


def orch(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_on_a_terminal_it_has_a_row_for_each_cell_and_says_where_rates_were_chosen(study: tuple[str, str]) -> None:
    text = orch("report", study[0], "--scale", "smoke", "--store", study[1], "--format", "terminal")
    lines = text.splitlines()
    assert lines[0] == "Word problems at 50% of the cost"
    assert "Accuracy at 40 inputs, where 0 is chance and 1 perfect, at smoke scale" in lines[1]
    assert "the learning rate chosen at 20 inputs" in lines[1]
    assert lines[3].split("  ")[0].strip() == "model"
    [row] = [line.split() for line in lines if "S_3" in line]
    assert " ".join(row) == "LSTM Word problem (S_3) 0 of 2 (0.00–0.66) 2 of 2 0.60 ± 0.14 0.70 0.57 1.00 1e-2"
    [unfinished] = [line for line in lines if "Z_6" in line]
    assert unfinished.split()[3:] == ["(Z_6)", "missing:", "0", "of", "4", "trials"]
    assert "published" not in text


def test_as_markdown_and_latex_its_texts_are_escaped(study: tuple[str, str], tmp_path: Path) -> None:
    options = (study[0], "--scale", "smoke", "--store", study[1])
    markdown = orch("report", *options, "--format", "markdown")
    assert "| LSTM | Word problem (S\\_3) | 0 of 2 (0.00–0.66) | 2 of 2 | 0.60 ± 0.14 | 0.70 | 0.57 |" in markdown
    output = tmp_path / "tables.tex"
    orch("report", *options, "--format", "latex", "--output", str(output))
    latex = output.read_text()
    assert r"LSTM & Word problem (S\_3) & 0 of 2 (0.00--0.66) & 2 of 2 & 0.60 $\pm$ 0.14 & 0.70 & 0.57 & 1.00" in latex
    assert r"\caption{Word problems at 50\% of the cost. Accuracy at 40 inputs" in latex
    assert r"\label{tab:words}" in latex


def test_results_of_the_file_are_grouped_by_the_words_of_its_tasks(study: tuple[str, str]) -> None:
    table = orch("results", study[0], "--scale", "smoke", "--store", study[1], "--format", "table").splitlines()
    assert table[0].split()[:3] == ["model", "task", "problem"]
    assert [line.split()[2] for line in table[2:]] == ["S_3", "Z_6"]


def test_figures_carry_captions_only_where_there_are_figures(study: tuple[str, str], tmp_path: Path) -> None:
    options = ("report", study[0], "--scale", "smoke", "--store", study[1], "--format", "terminal", "--captions")
    result = CliRunner().invoke(main, list(options))
    assert (result.exit_code, result.stderr) == (2, "error: --captions stand beside figures: add --figures FOLDER\n")
    folder = tmp_path / "figures"
    orch(*options, "--figures", str(folder))
    names = {path.name for path in folder.iterdir()}
    assert {f"lengths-words-word_problem.{kind}" for kind in ("svg", "pdf", "png", "tex")} <= names
    assert "chosen at 20 inputs" in (folder / "lengths-words-word_problem.tex").read_text()
