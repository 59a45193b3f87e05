"""What a search has asked and been told, as small files in the store: written once each, never changed.

`searches/<id>/search.json` is the question, `asked/<number>-<key>.json` a point as it was started, and
`told/<number>-<key>.json` what became of it. A point that was asked and not told is under way, or was when its driver
died. Points may be asked again: the last word counts.
"""

import enum
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import OrchError
from orch.search.space import Params, canonical_point
from orch.search.spec import SearchSpec
from orch.store import Store

FOLDER = "searches"


class PointState(enum.StrEnum):
    FINISHED = "finished"
    PRUNED = "pruned"
    INVALID = "invalid"
    """Settings that do not go together."""
    FAILED = "failed"
    """A trial of it failed; it is tried again when the search is."""


@dataclass(frozen=True, slots=True)
class Point:
    """One choice of the varied settings, asked for the so manyeth time."""

    number: int
    params: Params
    to_the_end: bool = False
    """Whether it must not be pruned."""
    found: tuple[str, ...] = ()
    """Trials that were finished when it was asked."""

    @property
    def key(self) -> str:
        return hashlib.sha256(canonical_point(self.params).encode()).hexdigest()[:8]

    @property
    def name(self) -> str:
        return f"{self.number:04d}-{self.key}"


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a point."""

    number: int
    params: Params
    state: PointState
    value: float | None = None
    """The objective, of a finished point."""
    test: float | None = None
    """The same at the test length: for people, not for the sampler."""
    steps: dict[str, int] = field(default_factory=dict)
    """Training steps of each of its trials."""
    spent: int = 0
    """Training steps that this search spent on it."""
    rungs: list[tuple[int, float]] = field(default_factory=list)
    """Validation accuracy over the seeds, where points are compared and at the last."""
    message: str = ""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def key(self) -> str:
        return Point(self.number, self.params).key

    @property
    def num_steps(self) -> int:
        return sum(self.steps.values())

    @property
    def validation(self) -> float | None:
        return self.rungs[-1][1] if self.rungs else None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Told":
        rungs = [(int(step), float(value)) for step, value in values["rungs"]]
        return cls(**{**values, "state": PointState(values["state"]), "rungs": rungs})


class History:
    """One search's, read from the store once and kept up as it goes on."""

    def __init__(self, store: Store, search_id: str):
        self._store, self.search_id = store, search_id
        asked = (
            Point(each["number"], each["params"], each["to_the_end"], tuple(each["found"]))
            for each in self._read("asked")
        )
        self._asked: dict[str, Point] = {point.name: point for point in asked}
        self._told: dict[str, Told] = {}
        for each in self._read("told"):
            told = Told.from_dict(each)
            self._told[Point(told.number, told.params).name] = told

    def _read(self, folder: str) -> Iterable[dict[str, Any]]:
        found = self._store.list_json(f"{FOLDER}/{self.search_id}/{folder}")
        return (found[name] for name in sorted(found))

    def told_path(self, point: Point) -> str:
        return f"{FOLDER}/{self.search_id}/told/{point.name}.json"

    @property
    def told(self) -> list[Told]:
        """The last word on each point, in the order of asking."""
        latest = {told.key: told for told in self.every_word}
        return sorted(latest.values(), key=lambda told: told.number)

    @property
    def every_word(self) -> list[Told]:
        """Also what was said of points that were asked again later."""
        return sorted(self._told.values(), key=lambda told: told.number)

    @property
    def under_way(self) -> list[Point]:
        return [point for name, point in sorted(self._asked.items()) if name not in self._told]

    @property
    def num_asked(self) -> int:
        numbers = [point.number for point in self._asked.values()] + [told.number for told in self._told.values()]
        return max(numbers, default=0)

    @property
    def spent(self) -> int:
        return sum(told.spent for told in self._told.values())

    def ask(self, point: Point) -> None:
        self._store.put_json(f"{FOLDER}/{self.search_id}/asked/{point.name}.json", asdict(point))
        self._asked[point.name] = point

    def tell(self, point: Point, told: Told) -> None:
        self._store.put_json(self.told_path(point), asdict(told))
        self._told[point.name] = told


def record_question(store: Store, question: SearchSpec, num_points: int) -> None:
    """So that the search can be shown and gone on with; the number of points may grow."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    values = {"question": question.to_dict(), "points": num_points, "at": at}
    store.put_json(f"{FOLDER}/{question.id}/search.json", values)


def recorded_searches(store: Store, name: str | None = None) -> dict[str, tuple[SearchSpec, int]]:
    """SearchSpec and number of points of every search in the store, or of those whose id begins like this."""
    found = {}
    for path in store.list_files(FOLDER):
        search_id = path.split("/")[1]
        if path.endswith("/search.json") and search_id.startswith(name or ""):
            values = store.get_json(path)
            if values is not None:
                found[search_id] = values["at"], SearchSpec.from_dict(values["question"]), values["points"]
    if name and not found:
        raise OrchError(f"no search on {store.location} begins with {name!r}: orch search --show lists all")
    in_order = sorted(found.items(), key=lambda item: item[1][0])
    return {search_id: (question, num_points) for search_id, (_, question, num_points) in in_order}
