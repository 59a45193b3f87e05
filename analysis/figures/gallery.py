"""Every figure that a store has results for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.analysis.aggregate import COLUMNS, scored
from orch.analysis.angles import read_rotations
from orch.analysis.comparison import Comparison, compare
from orch.analysis.figures import data_efficiency, factors, heatmap, hierarchy, learning, lengths, rotation_angles
from orch.analysis.figures.line import Line
from orch.analysis.figures.plotted_cell import PlottedCell, entries
from orch.analysis.names import task_name
from orch.analysis.published import OOD, TABLES, VALIDATION, published_cells
from orch.core.errors import OrchError
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.registry import ALL
from orch.sweeps.scales import Scale
from orch.sweeps.selection import LEARNED, Results, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from orch.store import Store


@dataclass(frozen=True, slots=True)
class Drawing:
    name: str
    """Fit for a file."""
    title: str
    caption: str
    sweep: str
    figure: "Figure"


@dataclass(frozen=True, slots=True)
class Gallery:
    drawings: list[Drawing]
    left_out: dict[str, str]
    """By name, why a figure could not be drawn."""


class _NothingToDraw(OrchError):
    pass


def figures(store: "Store", scale: Scale, sweeps: Iterable[str] = (ALL,), catalogue: Catalogue = BUILT_IN) -> Gallery:
    """Of these sweeps, with whatever is finished. What there is nothing to draw of is left out, with the reason."""
    gallery = Gallery([], {})
    material = _Material(store, scale, catalogue)
    for sweep in resolve(sweeps, catalogue):
        for name, draw in _FIGURES.get(sweep, _OF_ANY_SWEEP).items():
            try:
                gallery.drawings.extend(draw(material, sweep))
            except OrchError as error:
                gallery.left_out[name if name == sweep else f"{name}-{sweep}"] = str(error)
    return gallery


class _Material:
    """What figures are made of, read once."""

    def __init__(self, store: "Store", scale: Scale, catalogue: Catalogue):
        self.store, self.scale, self._catalogue = store, scale, catalogue
        self.finished: Mapping[str, Row] = {}
        if store.exists():
            rows = store.read("trials", [*COLUMNS, "length_curve"]).to_pylist()
            self.finished = {row["trial_id"]: row for row in rows}
        self._results = Results(lambda: self.finished)
        self._entries: dict[str, list[PlottedCell]] = {}

    def entries(self, sweep: str) -> list[PlottedCell]:
        """Of a sweep's cells that have results; at least one."""
        if sweep not in self._entries:
            cells = self._catalogue.sweeps[sweep].cells(self.scale, self._results)
            self._entries[sweep] = entries(cells, self.finished, _ALONG.get(sweep, ()))
        if not self._entries[sweep]:
            raise _NothingToDraw(f"no trial of {sweep} is finished at {self.scale.name} scale")
        return self._entries[sweep]

    def comparisons(self, table: str, split: str) -> list[Comparison]:
        self.entries(TABLES[table].sweep)
        found = compare(self.scale, self.finished, (), [table], self._results)
        return [each for each in found if each.published.split == split]


Draw = Callable[[_Material, str], Iterator[Drawing]]


def _lengths(material: _Material, sweep: str) -> Iterator[Drawing]:
    found = material.entries(sweep)
    tasks = _by_task(lengths.lines(found))
    if not tasks:
        raise _NothingToDraw(f"no trial of {sweep} has a length curve")
    for task, lines in tasks.items():
        trained = max(entry.trial.max_inputs for entry in found if entry.task.name == task)
        title = f"{task_name(task)}: accuracy against length{_of(sweep, task)}"
        figure = lengths.draw(lines, title, trained)
        yield Drawing(f"lengths-{sweep}-{task}", title, lengths.CAPTION, sweep, figure)


def _learning(material: _Material, sweep: str) -> Iterator[Drawing]:
    found = material.entries(sweep)
    table = material.store.read("curves", learning.COLUMNS)
    curves = learning.curves_of(table, (row["trial_id"] for entry in found for row in entry.chosen))
    losses, accuracies = map(_by_task, learning.lines(found, curves))
    if not losses:
        raise _NothingToDraw(f"the store has no curves of the trials of {sweep}")
    for task in losses:
        title = f"{task_name(task)}: learning curves{_of(sweep, task)}"
        figure = learning.draw(losses[task], accuracies[task], title)
        yield Drawing(f"learning-{sweep}-{task}", title, learning.CAPTION, sweep, figure)


def _of(sweep: str, task: str) -> str:
    return "" if sweep in ("main", task) else f" ({sweep})"


def _by_task(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.task.name, []).append(line)
    return found


def _hierarchy(material: _Material, sweep: str) -> Iterator[Drawing]:
    length = TABLES["main"].test_length
    title = f"Which model learns what: accuracy at {length} inputs after training on 2 to 10"
    caption = hierarchy.CAPTION.format(length=length, scale=material.scale.name, learned=LEARNED)
    figure = hierarchy.draw(material.comparisons("main", OOD), title, material.scale.name)
    yield Drawing("hierarchy", title, caption, sweep, figure)


def _heatmap(material: _Material, sweep: str) -> Iterator[Drawing]:
    for split, where in ((VALIDATION, "at trained lengths"), (OOD, f"at {TABLES['main'].test_length} inputs")):
        comparisons = material.comparisons("main", split)
        title = f"Table 1: accuracy {where}, ours and published"
        caption = heatmap.CAPTION.format(where=where, differs=heatmap.DIFFERS)
        yield Drawing(f"heatmap-{sweep}-{split}", title, caption, sweep, heatmap.draw(comparisons, title))


def _factors(material: _Material, sweep: str) -> Iterator[Drawing]:
    comparisons = material.comparisons("factors", OOD)
    sizes = sorted({each.published.key.modulus for each in comparisons})
    published = factors.published_reaches(published_cells("factors"))
    title = "Number of factors and the largest state machine tracked"
    figure = factors.draw(factors.reaches(comparisons), published, sizes, title)
    caption = factors.CAPTION.format(tracked=LEARNED, length=TABLES["factors"].test_length, scale=material.scale.name)
    yield Drawing(sweep, title, caption, sweep, figure)


def _data_efficiency(material: _Material, sweep: str) -> Iterator[Drawing]:
    found = material.entries(sweep)
    trial = found[0].trial
    title = f"Accuracy at {trial.test_length} inputs against the number of training examples"
    caption = data_efficiency.CAPTION.format(length=trial.test_length, trained=trial.max_inputs)
    yield Drawing(sweep, title, caption, sweep, data_efficiency.draw(data_efficiency.lines(found), title))


def _angles(material: _Material, sweep: str) -> Iterator[Drawing]:
    entry = material.entries(sweep)[0]
    modulus = entry.task.modulus
    for row in sorted(entry.chosen, key=lambda row: -scored(row["ood_accuracy"])):
        weights = material.store.get_weights(row["trial_id"])
        if weights is not None:
            rotations = read_rotations(weights, modulus, f"the file of weights of trial {row['trial_id']}")
            title = f"{task_name(entry.task.name, modulus)}: rotation angles and their harmonics"
            caption = rotation_angles.caption(rotations, row["trial_id"], scored(row["ood_accuracy"]))
            yield Drawing(sweep, title, caption, sweep, rotation_angles.draw(rotations, title))
            return
    raise _NothingToDraw(f"no trial of {sweep} with the chosen learning rate has kept its weights")


_ALONG = {"data-efficiency": data_efficiency.ALONG}
_OF_ANY_SWEEP: dict[str, Draw] = {"lengths": _lengths, "learning": _learning}
_FIGURES: dict[str, dict[str, Draw]] = {
    "main": {"hierarchy": _hierarchy, "heatmap": _heatmap, **_OF_ANY_SWEEP},
    "param-matched": {"lengths": _lengths},
    "dihedral": {"lengths": _lengths},
    "factors": {"factors": _factors},
    "data-efficiency": {"data-efficiency": _data_efficiency},
    "angles": {"angles": _angles},
    "additive": {},
    "frozen-parity": {},
}
"""Sweeps not named here, such as a user's own, have the figures of any sweep."""
