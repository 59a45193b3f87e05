"""The order in which a run starts its trials: a fixed one, or one that a decider chooses again as results arrive."""

import time
from collections import deque
from collections.abc import Iterable, Mapping

from orch.core.errors import OrchError
from orch.planning.packs import make_packs, packs_by_value
from orch.planning.plan import PlannedTrial
from orch.running.driver_log import StoreLog
from orch.running.options import RunOptions
from orch.running.units import Decider, Unit

ASK_SECONDS, ASK_RATIO = 2.0, 20.0
"""Least seconds between two questions to the decider, also as a multiple of the time that the last one took."""


class TrialOrder:
    """Makes the units of a run and, with a decider, replaces those that wait once results have arrived."""

    def __init__(self, decider: Decider | None, device: str, options: RunOptions, log: StoreLog):
        self._decider, self._device, self._options, self._log = decider, device, options, log
        self._taken: set[str] = set()
        self._has_news = False
        self._ask_at = 0.0

    @property
    def leaves_out(self) -> bool:
        """Whether trials may be left out because they settle nothing."""
        return self._decider is not None

    def take(self, trial_ids: Iterable[str]) -> None:
        """Note that trials were started, or that others have finished them."""
        self._taken.update(trial_ids)

    def result_arrived(self) -> None:
        """Note that there are new results, so that `arrange` asks the decider again."""
        self._has_news = True

    def attempted(self, todo: Iterable[str]) -> set[str]:
        """Return the ids of the trials that this run has dealt with and need not start again."""
        return set(self._taken if self._decider else todo)

    def units(self, todo: Mapping[str, PlannedTrial]) -> list[Unit]:
        """Return the units of these trials in the order to run them, without those that settle nothing."""
        if self._decider is None:
            packs = make_packs(todo.values(), self._device, self._options.pack, self._options.cheapest_first)
            return [Unit(pack) for pack in packs]
        started, self._has_news = time.monotonic(), False
        values = self._decider.values(todo.values())
        took = time.monotonic() - started
        self._ask_at = time.monotonic() + max(ASK_SECONDS, ASK_RATIO * took)
        self._log.event("trials valued", left=len(todo), worth_running=len(values), seconds=round(took, 3))
        return [Unit(pack) for pack in packs_by_value(todo.values(), values, self._device, self._options.pack)]

    def arrange(self, queue: deque[Unit], todo: Mapping[str, PlannedTrial]) -> None:
        """Replace the units that wait, except retries, if results have arrived since the decider was asked."""
        if self._decider is None or not self._has_news or (queue and time.monotonic() < self._ask_at):
            return
        retries = [unit for unit in queue if not self._taken.isdisjoint(unit.open_ids)]
        try:
            units = self.units({key: each for key, each in todo.items() if key not in self._taken})
        except OrchError as error:  # the store may be unreachable for a moment: the order stays until the next result
            self._log.event("trials not valued", error=str(error))
            return
        queue.clear()
        queue.extend([*units, *retries])
