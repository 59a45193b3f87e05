"""The history of a search: small files in the store, each written once and never changed.

`searches/<id>/search.json` is the question, `asked/<number>-<key>.json` a point as it was started, and
`told/<number>-<key>.json` its result. A point without a result is under way, or was when its driver died. A point that
is started again has a new number, and its last result counts.
"""

import enum
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import DamagedFile, OrchError
from orch.core.records import PointRecord, PointResultRecord, SearchRecord
from orch.search.space import Params, Space, canonical_point
from orch.search.spec import SearchSpec, points_problems
from orch.store import Store
from orch.usercode import codes_defining, make_catalogue
from orch.usercode.stored_code import get_code, put_code

FOLDER = "searches"


class PointState(enum.StrEnum):
    FINISHED = "finished"
    PRUNED = "pruned"
    INVALID = "invalid"
    """Its settings cannot be combined."""
    FAILED = "failed"
    """One of its trials failed. The point is tried again when the search is run again."""


@dataclass(frozen=True, slots=True)
class Point:
    """One choice of the varied settings."""

    number: int
    """Its place in the order in which points were started, from 1."""
    params: Params
    to_the_end: bool = False
    """Whether it is trained without pruning."""
    found: tuple[str, ...] = ()
    """Ids of its trials that had a result when it was started."""

    @property
    def key(self) -> str:
        return hashlib.sha256(canonical_point(self.params).encode()).hexdigest()[:8]

    @property
    def name(self) -> str:
        return f"{self.number:04d}-{self.key}"


@dataclass(frozen=True, slots=True)
class PointResult:
    """The result of a point."""

    number: int
    params: Params
    state: PointState
    value: float | None = None
    """The objective of a finished point."""
    test: float | None = None
    """The accuracy at the test length. It is shown to people and withheld from the sampler."""
    steps: dict[str, int] = field(default_factory=dict)
    """Training steps of each of its trials."""
    spent: int = 0
    """Training steps that this search spent on the point."""
    rungs: list[tuple[int, float]] = field(default_factory=list)
    """Step and validation accuracy over the seeds, at each rung and at the last validation."""
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
    def from_dict(cls, values: Mapping[str, Any]) -> "PointResult":
        rungs = [(int(step), float(value)) for step, value in values["rungs"]]
        known = {name: values[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "state": PointState(values["state"]), "rungs": rungs})


class History:
    """The points of one search and their results: read from the store once, and kept up to date as it runs."""

    def __init__(self, store: Store, search_id: str, space: Space | None = None):
        """Points that are not in `space` are left out: they belong to no search of this question."""
        self._store, self.search_id, self._space = store, search_id, space
        points = (
            Point(each["number"], each["params"], each["to_the_end"], tuple(each["found"]))
            for each in self._read("asked", PointRecord)
        )
        self._points: dict[str, Point] = {point.name: point for point in points}
        self._results: dict[str, PointResult] = {}
        for each in self._read("told", PointResultRecord):
            result = PointResult.from_dict(each)
            self._results[Point(result.number, result.params).name] = result

    def _read(self, folder: str, kind: Any) -> Iterable[dict[str, Any]]:
        found = self._store.list_json(f"{FOLDER}/{self.search_id}/{folder}", kind)
        return (found[name] for name in sorted(found) if self._space is None or self._space.has(found[name]["params"]))

    def result_path(self, point: Point) -> str:
        """Return where in the store the result of a point is written."""
        return f"{FOLDER}/{self.search_id}/told/{point.name}.json"

    @property
    def results(self) -> list[PointResult]:
        """The last result of each point, in the order they were started."""
        latest = {result.key: result for result in self.all_results}
        return sorted(latest.values(), key=lambda result: result.number)

    @property
    def all_results(self) -> list[PointResult]:
        """Every result, including earlier ones of points that were started again."""
        return sorted(self._results.values(), key=lambda result: result.number)

    @property
    def under_way(self) -> list[Point]:
        return [point for name, point in sorted(self._points.items()) if name not in self._results]

    @property
    def last_number(self) -> int:
        """The number of the point that was started last."""
        results = [Point(result.number, result.params) for result in self._results.values()]
        return max((point.number for point in [*self._points.values(), *results]), default=0)

    @property
    def spent(self) -> int:
        """Training steps that the search has spent."""
        return sum(result.spent for result in self._results.values())

    def record_point(self, point: Point) -> None:
        """Record that a point is started."""
        self._store.put_json(f"{FOLDER}/{self.search_id}/asked/{point.name}.json", asdict(point))
        self._points[point.name] = point

    def record_result(self, point: Point, result: PointResult) -> None:
        self._store.put_json(self.result_path(point), asdict(result))
        self._results[point.name] = result


def record_question(store: Store, question: SearchSpec, num_points: int) -> None:
    """Record a search, so that it can be shown and continued. A later call may raise its number of points."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    code = put_code(store, codes_defining([question.example]))
    values = {"question": question.to_dict(), "points": num_points, "at": at, "code": code}
    store.put_json(f"{FOLDER}/{question.id}/search.json", values)


def recorded_searches(store: Store, name: str | None = None) -> dict[str, tuple[SearchSpec, int]]:
    """Return the question and the number of points of every search, or of those whose id begins with `name`.

    A search of user-defined models or tasks is found only by its name, because its recorded code is run: see
    `searches_with_code`.
    """
    found = {}
    for path in store.list_files(FOLDER):
        search_id = path.split("/")[1]
        if path.endswith("/search.json") and search_id.startswith(name or ""):
            values = store.get_json(path, SearchRecord)
            if values is not None and (name or not values.get("code")):
                catalogue = make_catalogue(get_code(store, values.get("code", ()), f"search {search_id}"))
                question = SearchSpec.from_dict(values["question"], catalogue)
                if problems := [*question.problems(), *points_problems(values["points"])]:
                    raise DamagedFile(f"{path} of the store at {store.location} asks for no search: {problems[0]}")
                found[search_id] = values["at"], question, values["points"]
    if name and not found:
        raise OrchError(f"no search on {store.location} begins with {name!r}: orch search --show lists all")
    in_order = sorted(found.items(), key=lambda item: item[1][0])
    return {search_id: (question, num_points) for search_id, (_, question, num_points) in in_order}


def searches_with_code(store: Store) -> list[str]:
    """Return the ids of the searches of user-defined models or tasks. Their code is not run."""
    paths = (path for path in store.list_files(FOLDER) if path.endswith("/search.json"))
    return [path.split("/")[1] for path in paths if (store.get_json(path, SearchRecord) or {}).get("code")]
