"""The sweeps that a user names on a command line: built-in ones, files, and sweeps of files that a store has recorded.

Naming a recorded sweep is the user's consent to run its code. A sweep that nobody names is never run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch.core.errors import OrchError, UnknownName
from orch.core.records import SweepRecord
from orch.sweeps.catalogue import BUILT_IN, Catalogue
from orch.sweeps.protocols import SEPARATOR, options_of
from orch.sweeps.registry import ALL
from orch.sweeps.scales import SCALES
from orch.usercode.catalogue import make_catalogue, read_codes
from orch.usercode.code import SUFFIX, UserCode
from orch.usercode.kept import with_kept
from orch.usercode.stored_code import get_code

if TYPE_CHECKING:
    from orch.store import Store

FOLDER = "sweeps"


@dataclass(frozen=True, slots=True)
class NamedSweeps:
    """The sweeps that a user named, and the catalogue that has all of them."""

    names: tuple[str, ...]
    catalogue: Catalogue
    codes: tuple[UserCode, ...] = ()
    """The code of those that are not built in."""
    scale: str | None = None
    """The scale that the user asked for, or else the one at which a recorded sweep was run last."""
    note: str = ""
    """A sentence about recordings that were not used; empty if there are none."""


def name_sweeps(names: Iterable[str], store: "Store | None" = None, scale: str | None = None) -> NamedSweeps:
    """Find the sweeps of these names: built-in ones, the paths of files, and sweeps that the store has recorded.

    Of several recordings of a name, the newest one at `scale` counts, or the newest of all if `scale` is None. With a
    store, earlier results count for edited code where `orch keep` has recorded that in it.
    """
    given = list(names)
    read = read_codes((name for name in given if name.endswith(SUFFIX)), store)
    unknown = [name for name in given if name not in read and name not in BUILT_IN.sweeps and name != ALL]
    recorded = {name: _find(name, store, scale) for name in dict.fromkeys(unknown)}
    codes = tuple(dict.fromkeys([*read.values(), *(each.code for each in recorded.values())]))
    newest = max(recorded.values(), key=lambda each: each.at, default=None)
    return NamedSweeps(
        names=tuple(read[name].name if name in read else name for name in given),
        catalogue=make_catalogue(codes),
        codes=codes,
        scale=scale or (newest.scale if newest else None),
        note="\n".join(each.note for each in recorded.values() if each.note),
    )


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A recorded sweep of a user's file."""

    code: UserCode
    scale: str
    at: str
    note: str


def recordings(store: "Store") -> list[Mapping[str, Any]]:
    """Return the record of every request for sweeps that was made on a store, the newest first. No code is run."""
    return sorted(
        store.list_json(FOLDER, SweepRecord).values(), key=lambda values: str(values.get("at", "")), reverse=True
    )


def own_names(values: Mapping[str, Any]) -> list[str]:
    """Return the names in a recording that are not built in: those of sweeps in a user's files."""
    return [name for name in values["sweeps"] if name != ALL and name not in BUILT_IN.sweeps]


def recorded_code(store: "Store", values: Mapping[str, Any], name: str) -> UserCode:
    """Return the code of one sweep of a recording, without running it."""
    codes = get_code(store, values.get("code", ()), name)
    found = next((code for code in codes if code.name == name), None)
    if found is None:
        raise OrchError(f"the code of {name} is not in the store at {store.location}: name its file instead")
    return found


def newest_code(store: "Store", name: str, scale: str) -> UserCode | None:
    """Return the code that `name_sweeps` would take at a scale, without running it; None if there is none."""
    matching = [values for values in recordings(store) if name in own_names(values)]
    return recorded_code(store, _newest(matching, scale), name) if matching else None


def _newest(matching: list[Mapping[str, Any]], scale: str | None) -> Mapping[str, Any]:
    at_scale = [values for values in matching if values["scale"] == scale]
    return (at_scale or matching)[0]


def _find(name: str, store: "Store | None", scale: str | None) -> _Recorded:
    records = [] if store is None else recordings(store)
    matching = [values for values in records if name in own_names(values)]
    if not matching:
        known = [own for values in records for own in own_names(values)]
        raise UnknownName("sweep", name, {*BUILT_IN.sweeps, ALL, *known})
    assert store is not None
    chosen = _newest(matching, scale)
    code = with_kept(store, recorded_code(store, chosen, name))
    return _Recorded(code, chosen["scale"], str(chosen.get("at", "")), _note(name, chosen, matching, scale))


def _note(name: str, chosen: Mapping[str, Any], matching: list[Mapping[str, Any]], scale: str | None) -> str:
    """Return what a user must know of the other recordings of a name: other scales, and other versions of its file."""
    texts = []
    scales = sorted({values["scale"] for values in matching}, key=_rank)
    if scale is None and len(scales) > 1:
        others = ", ".join(" ".join(options_of(each)) for each in scales if each != chosen["scale"])
        ran = f"{name} was run at {' and '.join(scales)} scale"
        texts.append(f"{ran}: this is the last one, {chosen['scale']}; for the rest, add {others}")
    if any(values.get("code") != chosen.get("code") for values in matching):
        texts.append(f"{name} was recorded with several versions of its file: this is the one of {chosen.get('at')}")
    return "\n".join(texts)


def _rank(scale: str) -> tuple[int, str]:
    """Return the place of a scale among others: the largest comes first, and without a protocol before those with."""
    places = {name: place for place, name in enumerate(SCALES)}
    return places.get(scale.partition(SEPARATOR)[0], len(places)), scale
