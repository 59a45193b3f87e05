"""Every figure is drawn from whatever a store has, looks the same everywhere, and can be read."""

import doctest
import itertools
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from orch.analysis.angles import Rotations
from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.figures import (
    Gallery,
    angles,
    axes,
    factors,
    figures,
    heatmap,
    hierarchy,
    learning,
    lengths,
    save,
    shade,
    svg_element,
)
from orch.analysis.figures import data_efficiency as efficiency
from orch.analysis.figures.saving import to_bytes
from orch.analysis.figures.style import TEXT_SIZE, distinct_looks
from orch.analysis.published import OOD
from orch.core.errors import UnknownName
from orch.models import REGISTRY, ModelConfig
from orch.store import Store, StoreWarning, curve_rows, trial_row
from orch.sweeps.experiments import main as main_sweep
from orch.sweeps.registry import SWEEPS
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.scales import PAPER, SMOKE, Scale
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial
from orch.training.checkpoints import model_bytes
from orch.training.train import train
from tests.analysis.drawn import finished_rows, plotted, visible_texts

pytestmark = pytest.mark.thorough

SWEEPS_WITH_FIGURES = ("main", "param-matched", "dihedral", "factors", "data-efficiency", "angles")


def invented_result(trial: Trial) -> Result:
    """Return an invented result whose accuracy falls with the length."""
    scores = {length: 1 / (1 + length / 500 / trial.task.modulus) for length in trial.tested_lengths}
    steps = (trial.steps // 2, trial.steps)
    curve = tuple(CurvePoint(step, 1 / step, 1 / step, 1 - 1 / step, 0.1) for step in steps)
    return Result(trial, StopReason.BUDGET, trial.steps, 1.0, curve, scores, dict.fromkeys(scores, 0.0), {})


def write(store: Store, results: Iterable[Result]) -> None:
    attempts = {f"attempt {number}": result for number, result in enumerate(results)}
    store.write("curves", [row for attempt, result in attempts.items() for row in curve_rows(result, attempt)])
    store.write("trials", [trial_row(result, {"attempt_id": attempt}) for attempt, result in attempts.items()])


def trials_of(sweep: str, scale: Scale, store: Store) -> list[Trial]:
    cells = Board.read(store, scale).cells(sweep)
    return [trial for each in cells for trial in each.cell.trials if isinstance(trial, Trial)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with all sweeps at smoke scale; the rotation model is trained, because its weights are drawn."""
    store = Store.open(tmp_path_factory.mktemp("figures") / "runs")
    for sweep in SWEEPS_WITH_FIGURES:
        done = store.done() if store.exists() else set()
        trials = [trial for trial in trials_of(sweep, SMOKE, store) if trial.id not in done]
        write(store, map(train if sweep == "angles" else invented_result, trials))
    for trial in trials_of("angles", SMOKE, store):
        store.put_weights(trial.id, model_bytes(train(trial)))
    return store


@pytest.fixture(scope="module")
def gallery(store: Store) -> Gallery:
    return figures(Board.read(store, SMOKE), SWEEPS_WITH_FIGURES)


def paper_figures() -> Iterator[tuple[str, Figure]]:
    """Yield each kind of figure with as many models and moduli as the paper has."""
    cells = list(main_sweep.cells(PAPER, Results.none()))
    finished = finished_rows(cells)
    of_addition = [entry for entry in plotted(cells, finished) if entry.task.name == "modular_addition"]
    yield "lengths", lengths.draw(lengths.lines(of_addition), "Modular addition: accuracy against length")
    chosen = [row["trial_id"] for entry in of_addition for row in entry.chosen]
    losses = np.geomspace(3, 1e-5, 8)
    curves = {trial_id: learning.Curve(np.geomspace(100, 1e5, 8), losses, 1 - losses / 3) for trial_id in chosen}
    yield "learning", learning.draw(*learning.lines(of_addition, curves), "Modular addition: learning curves")
    comparisons = [each for each in compare(Board(PAPER, finished), ["main"]) if each.published.split == OOD]
    yield "heatmap", heatmap.draw(comparisons, "Table 1")
    halves = compare(Board(PAPER, dict(list(finished.items())[::4])), ["main"])
    unfinished = [each for each in halves if each.published.split == OOD]
    yield "hierarchy", hierarchy.draw(unfinished, "Which model learns what", PAPER.name)
    results = Results(lambda: finished)
    sized = list(SWEEPS["data-efficiency"].cells(PAPER, results))
    points = efficiency.lines(plotted(sized, finished_rows(sized), efficiency.ALONG))
    yield "data efficiency", efficiency.draw(points, "Accuracy at 500 inputs")
    published = factors.published_reaches()
    yield "factors", factors.draw(published[:5], published, (2, 3, 5), "Factors")
    turns = 2 * np.pi / 10 * np.outer(np.arange(10), np.arange(-10, 10))
    yield "angles", angles.draw(Rotations(turns, turns[1] / 0.6283, np.linspace(2, 1, 20)), "Angles")


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return dict(paper_figures())


# Which figures are drawn


def test_a_store_with_all_sweeps_has_every_figure(gallery: Gallery) -> None:
    tasks = ("modular_addition", "state_machine", "modular_arithmetic")
    expected = {"angles", "data-efficiency", "factors", "hierarchy", "heatmap-main-ood", "heatmap-main-validation"}
    expected |= {f"{kind}-main-{task}" for kind in ("lengths", "learning") for task in tasks}
    expected |= {f"lengths-param-matched-{task}" for task in tasks} | {"lengths-dihedral-dihedral"}
    assert {drawing.name for drawing in gallery.drawings} == expected
    assert gallery.left_out == {}
    assert all(drawing.title and drawing.caption and "{" not in drawing.caption for drawing in gallery.drawings)


def test_an_empty_store_has_no_figure_and_says_why(tmp_path: Path) -> None:
    found = figures(Board.read(Store.open(tmp_path / "none"), SMOKE), SWEEPS_WITH_FIGURES)
    assert found.drawings == []
    assert found.left_out["learning-main"] == "no trial of main is finished at smoke scale"
    assert len(found.left_out) == 12


def test_a_single_finished_trial_is_enough_for_a_figure(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    write(store, [invented_result(trials_of("main", SMOKE, store)[0])])
    found = figures(Board.read(store, SMOKE), ["main", "angles"])
    assert {"lengths-main-modular_addition", "learning-main-modular_addition", "heatmap-main-ood"} < {
        drawing.name for drawing in found.drawings
    }
    assert found.left_out == {"angles": "no trial of angles is finished at smoke scale"}
    for drawing in found.drawings:
        assert to_bytes(drawing.figure, "png")


def test_without_weights_or_with_damaged_ones_the_angles_are_left_out(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    [trial] = trials_of("angles", SMOKE, store)
    write(store, [invented_result(trial)])
    assert "kept its weights" in figures(Board.read(store, SMOKE), ["angles"]).left_out["angles"]
    store.put_weights(trial.id, b"nonsense")
    with pytest.warns(StoreWarning, match=f"weights/{trial.id}.safetensors .* is damaged"):
        found = figures(Board.read(store, SMOKE), ["angles"])
    assert "kept its weights" in found.left_out["angles"]


def test_the_demo_has_a_line_for_each_of_its_models(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    write(store, map(invented_result, trials_of("demo", SMOKE, store)))
    found = {drawing.name: drawing for drawing in figures(Board.read(store, SMOKE), ["demo"]).drawings}
    texts = {text for text, *_ in visible_texts(found["lengths-demo-modular_addition"].figure)}
    models = {"Bilinear", "Block 1 (real diagonal)", "Block 2", "LSTM", "Transformer (1 layer)"}
    assert {*models, "Parity", "m = 3"} <= texts


# How a figure looks


@pytest.mark.parametrize(
    "name", ["lengths", "learning", "heatmap", "hierarchy", "data efficiency", "factors", "angles"]
)
def test_all_text_can_be_read_in_print(drawn: dict[str, Figure], name: str) -> None:
    figure = drawn[name]
    texts = visible_texts(figure)
    assert len(texts) > 10
    assert min(text.get_fontsize() for _, text, _ in texts) >= TEXT_SIZE
    assert figure.get_figwidth() < 8.3, "wider than a page"
    width, height = figure.bbox.width, figure.bbox.height
    outside = [text for text, _, (x0, y0, x1, y1) in texts if x0 < 0 or y0 < 0 or x1 > width or y1 > height]
    assert not outside
    overlapping = [
        (one, other)
        for (one, _, a), (other, _, b) in itertools.combinations(texts, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1
    ]
    assert not overlapping


def test_models_can_be_distinguished_without_colour() -> None:
    planned = list(main_sweep.cells(PAPER, Results.none()))
    look_of = {entry.label: entry.look for entry in plotted(planned, finished_rows(planned))}
    assert len(look_of) == 15
    assert len({(look.marker, str(look.line), look.filled) for look in look_of.values()}) == 15
    assert len({look.colour for look in look_of.values()}) == 15


def test_a_model_has_the_same_look_in_every_sweep_and_user_models_have_distinct_looks() -> None:
    bilinear, lstm = (REGISTRY[name].look_of() for name in ("bilinear", "lstm"))
    found = distinct_looks({"Bilinear": bilinear, "Mine": ModelConfig.look_of(), "Yours": ModelConfig.look_of("wide")})
    assert found["Bilinear"] == distinct_looks({"LSTM": lstm, "Bilinear": bilinear})["Bilinear"] == bilinear
    assert len(set(found.values())) == 3


def test_a_figure_is_the_same_whatever_the_users_settings() -> None:
    turns = Rotations(np.ones((3, 2)), np.ones(2), np.ones(2))
    before = to_bytes(angles.draw(turns, "Angles"), "svg")
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "none", "savefig.dpi": 30, "lines.color": "red"}):
        assert to_bytes(angles.draw(turns, "Angles"), "svg") == before
        assert matplotlib.rcParams["font.size"] == 20, "the settings are restored"
    assert b"date" not in before


def test_figures_can_be_drawn_in_several_threads_at_once(store: Store) -> None:
    expected = [
        to_bytes(drawing.figure, "svg")
        for drawing in figures(Board.read(store, SMOKE), ["dihedral", "factors"]).drawings
    ]
    found: list[list[bytes]] = []

    def draw() -> None:
        drawings = figures(Board.read(store, SMOKE), ["dihedral", "factors"]).drawings
        found.append([to_bytes(drawing.figure, "svg") for drawing in drawings])

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


def test_a_name_may_contain_any_character() -> None:
    task = PAPER.task("modular_addition", 2)
    cells = [PAPER.cell(task, PAPER.model("lstm"), reading="$<script>--> {x}")]
    figure = lengths.draw(lengths.lines(plotted(cells, finished_rows(cells))), "$1 & <b>")
    root = ElementTree.fromstring(svg_element(figure, "one", "$1 & <b>"))
    assert not [node for node in root.iter() if "script" in str(node.tag)]


@pytest.mark.parametrize("module", [axes, shade], ids=lambda module: module.__name__)
def test_examples_in_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


# Files


def test_figures_are_saved_by_the_ending_of_their_name(gallery: Gallery, tmp_path: Path) -> None:
    figure = gallery.drawings[0].figure
    save(figure, tmp_path / "one.svg")
    save(figure, tmp_path / "one.png")
    save(figure, tmp_path / "one.pdf")
    assert (tmp_path / "one.svg").read_text().startswith("<?xml")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    assert to_bytes(figure, "pdf") == to_bytes(figure, "pdf"), "without the time at which it was made"
    with pytest.raises(UnknownName, match="there are: pdf, png, svg"):
        save(figure, tmp_path / "one.doc")


def test_ids_of_figures_within_one_page_are_distinct(gallery: Gallery) -> None:
    elements = [svg_element(each.figure, each.name, 'A "title" <script>') for each in gallery.drawings[:4]]
    ids: set[str] = set()
    for element in elements:
        root = ElementTree.fromstring(element)
        assert root.get("aria-label") == 'A "title" <script>'
        own = {node.get("id") for node in root.iter()} - {None}
        used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', element))
        assert used
        assert used <= own
        assert not ids & own
        ids |= {name for name in own if name}


def test_drawing_imports_neither_torch_nor_ray_nor_pyplot(store: Store, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from orch.analysis.board import Board\n"
        "from orch.analysis.figures import figures, save\n"
        "from orch.sweeps.scales import SMOKE\n"
        "from orch.store import Store\n"
        "assert 'matplotlib' not in sys.modules\n"
        f"for drawing in figures(Board.read(Store.open({store.uri!r}), SMOKE), ['angles', 'factors']).drawings:\n"
        f"    save(drawing.figure, {str(tmp_path)!r} + '/' + drawing.name + '.svg')\n"
        "assert not {'torch', 'ray', 'matplotlib.pyplot'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    again = figures(Board.read(store, SMOKE), ["angles", "factors"]).drawings
    assert [(tmp_path / f"{each.name}.svg").read_bytes() for each in again] == [
        to_bytes(each.figure, "svg") for each in again
    ]
