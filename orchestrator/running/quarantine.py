"""The quarantine of faulty machines and GPUs: attempts there fail alike while others train. Imports no Ray.

A place is a GPU of a machine, or a machine. Ray cannot be told to avoid one GPU, and it gives the next unit to a
machine that is free, so a worker on a place in quarantine takes no unit and occupies the place until the run ends.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from orch.running.failures import Failure

SICK_AFTER = 3
"""Failures alike, with no finished trial among them, after which a place is in quarantine if others train."""


@dataclass(frozen=True)
class Place:
    """A GPU of a machine; without a device, the whole machine."""

    node: str
    """Ray's id of the machine."""
    host: str = field(default="", compare=False)
    device: str = ""
    """Number of the GPU on its machine, or several numbers."""

    @property
    def machine(self) -> "Place":
        return replace(self, device="")

    def has(self, other: "Place") -> bool:
        """Return whether the other place is this one or is on it."""
        return self.node == other.node and self.device in ("", other.device)

    @property
    def label(self) -> str:
        machine = f"{self.host or 'machine'} (Ray node {self.node[:8]})"
        return f"GPU {self.device} of {machine}" if self.device else machine

    def to_dict(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Place":
        return cls(**values)


class Quarantine:
    """Decides from the attempts of a run which places are sick."""

    def __init__(self) -> None:
        self.sick: dict[Place, str] = {}
        """The places in quarantine, each with the signature of what fails there."""
        self.seen: set[Place] = set()
        """Every place on which an attempt has trained or failed."""
        self._failed: dict[Place, list[str]] = {}
        """The signatures of failures at each place since a trial finished there."""
        self._trains: set[Place] = set()
        """The places whose last news was good."""

    def trained(self, place: Place, finished: bool) -> None:
        """Note that a worker made progress at a place or, if `finished`, ended a trial.

        Progress does not clear the place: a GPU may fail after minutes, every time.
        """
        self.seen.add(place)
        self._trains.add(place)
        if finished:
            self._failed.pop(place, None)
            self._failed.pop(place.machine, None)

    def failed(self, failure: Failure) -> Place | None:
        """Note a failed attempt, and return the place that is in quarantine from now on, if there is one."""
        place = failure.place
        if place is None or failure.blameless or failure.deterministic or failure.store_lost:
            return None
        self.seen.add(place)
        self._trains.discard(place)
        self._failed.setdefault(place, []).append(failure.signature)
        if any(sick.has(place) for sick in self.sick):
            return None
        for candidate in dict.fromkeys((place, place.machine)):
            if self._is_sick(candidate, failure.signature) and self._others_train(candidate):
                self.sick = {each: why for each, why in self.sick.items() if not candidate.has(each)}
                self.sick[candidate] = failure.signature
                return candidate
        return None

    def _is_sick(self, candidate: Place, signature: str) -> bool:
        """Return whether the latest failures at a place are alike. A machine is sick if several of its GPUs are."""
        failed = {place: signatures for place, signatures in self._failed.items() if candidate.has(place)}
        if candidate in failed:
            part_trains = any(candidate.has(place) and place != candidate for place in self._trains)
            return failed[candidate][-SICK_AFTER:] == [signature] * SICK_AFTER and not part_trains
        alike = {place: Counter(signatures)[signature] for place, signatures in failed.items()}
        one_device = sum(count > 0 for count in alike.values()) < 2
        return not one_device and sum(alike.values()) >= SICK_AFTER and not any(map(candidate.has, self._trains))

    def _others_train(self, candidate: Place) -> bool:
        return any(not any(each.has(place) for each in (candidate, *self.sick)) for place in self._trains)

    def excuse(self, failures: Iterable[Failure]) -> list[Place]:
        """Take back failures that a trial was to blame for, and return the places that leave the quarantine."""
        for failure in failures:
            if failure.place is not None and failure.signature in self._failed.get(failure.place, ()):
                self._failed[failure.place].remove(failure.signature)
        freed = [place for place, signature in self.sick.items() if self._num_alike(place, signature) < SICK_AFTER]
        for place in freed:
            del self.sick[place]
        return freed

    def _num_alike(self, sick: Place, signature: str) -> int:
        return sum(signatures.count(signature) for place, signatures in self._failed.items() if sick.has(place))

    def lift(self) -> None:
        """End every quarantine, as when no other place is left."""
        self.sick.clear()
        self._failed.clear()


def published(sick: Mapping[Place, str]) -> list[dict[str, Any]]:
    """Return the places in quarantine as plain values for the driver's file, where workers and `orch status` read them.

    Each has what fails there as `why`.
    """
    return [place.to_dict() | {"why": why} for place, why in sick.items()]


def read_published(counts: Mapping[str, Any]) -> list[tuple[Place, str]]:
    """Return the places in quarantine from the counts of a driver's file, each with what fails there."""
    found = [dict(each) for each in counts.get("quarantined", ())]
    return [(Place(each["node"], each["host"], each["device"]), each["why"]) for each in found]


def quarantines(driver: Mapping[str, Any], place: Place) -> bool:
    """Return whether a driver, given its file, keeps units off a place."""
    return any(sick.has(place) for sick, _ in read_published(driver.get("counts") or {}))
