"""Times of training steps, alone and in packs: how far they are from their floor, and a record for `orch plan`."""

import functools
import statistics
import time

import torch

from orch.core.counted import counted
from orch.core.records import RatesRecord
from orch.models.kernel import is_compiled
from orch.models.network import PerTrial
from orch.models.stacking import NUM_TRIED, Calls
from orch.planning.estimate import rate_key, step_seconds
from orch.planning.pack_size import memory, pace_of, stacks_exactly
from orch.running import provenance
from orch.running.doctor.examined_trials import LONGEST, pack_of, published
from orch.running.doctor.floor import DeviceRates, Floor, now
from orch.store import Store
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial
from orch.training.capture import NUM_WARM_UP_STEPS, find_recorder
from orch.training.train import Training

SIZES = (1, 9, 27)
SHORTEST_TURN = 0.05
"""Seconds of consecutive steps that are timed at once: a GPU is waited for only at the end of them."""


class Timing:
    """Times the models one after the other, and stores what it found."""

    def __init__(self, store_uri: str, device: str, seconds: float, definitions: Definitions = BUILT_IN_DEFINITIONS):
        """Time each size of pack for so many seconds."""
        self._store_uri, self._device, self._seconds, self._definitions = store_uri, device, seconds, definitions
        self._ratios: dict[str, float] = {}
        self._packs: dict[str, dict[str, float]] = {}

    @functools.cached_property
    def _rates(self) -> DeviceRates:
        return DeviceRates(self._device)

    def measure(self, name: str) -> str:
        """Time a model at its published size, and return how far its steps are from their floor."""
        trial = published(name, self._definitions)
        told, alone = list[str](), 0.0
        for size in pack_sizes(trial, self._device):
            try:
                seconds, floor = self._measure_pack(trial, size)
            except torch.OutOfMemoryError:
                told.append(f"pack of {size}: too large for the device's memory")
                break
            self._packs.setdefault(rate_key(trial.model), {})[str(size)] = seconds
            if size == 1:
                alone = seconds
                self._ratios[rate_key(trial.model)] = seconds / step_seconds(trial, _kind(self._device))
                told.append(describe(seconds, floor))
            else:
                gain = f"{size * alone / seconds:.2g}× the trials a second"
                told.append(f"pack of {size}: {seconds * 1e3:.3g} ms, {gain}, {seconds / floor.seconds:.1f}× its floor")
        return "; ".join(told)

    def _measure_pack(self, trial: Trial, size: int) -> tuple[float, Floor]:
        training = Training(pack_of(trial, size), self._device)
        seconds = seconds_per_step(training, self._seconds)
        tokens_KBT, _, _ = training.next_batch()
        num_positions = int((tokens_KBT < trial.vocabulary.readable).sum())
        num_launches = count_launches(training)
        del training
        return seconds, self._rates.floor(trial, size, num_positions, num_launches)

    def record(self) -> str:
        """Store the times for plans. Those of other models that were recorded for this device are kept."""
        place = provenance.machine(self._device, torch.get_num_threads())
        store = Store.open(self._store_uri)
        path = f"rates/{''.join(letter if letter.isalnum() else '-' for letter in place['device'].lower())}.json"
        known = store.get_json(path, RatesRecord)
        ratios, packs = self._ratios, self._packs
        if known is not None:
            ratios, packs = known["ratios"] | ratios, known.get("packs", {}) | packs
        found = {"device": place["device"], "host": place["host"], "memory": device_memory(self._device)}
        store.put_json(path, found | {"ratios": ratios, "packs": packs})
        return f"the times of {counted(len(self._packs), 'model')} are in {path} of the store, for orch plan"


def device_memory(device: str) -> float | None:
    """Return the bytes of a GPU; None for a CPU, whose memory trials do not have for themselves."""
    if not (device.startswith("cuda") and torch.cuda.is_available()):
        return None
    return float(torch.cuda.get_device_properties(device).total_memory)


def pack_sizes(trial: Trial, device: str) -> list[int]:
    """Return the sizes of packs to time: those that the planner may choose, for a gain that is to be measured."""
    pace = pace_of(trial, device)
    if not _stacks(trial, device):
        return [1]
    return [
        size
        for size in SIZES
        if size == 1 or (size <= pace.largest_pack and memory(trial, size, device) <= pace.memory)
    ]


def _stacks(trial: Trial, device: str) -> bool:
    """Return whether trials share one program, with the same numbers as alone where that is known to hold."""
    kind = trial.model.network()
    if issubclass(kind, PerTrial):
        shape = trial.batch_size, trial.task.num_tokens(trial.max_inputs)
        return kind.stacking(trial.model, trial.vocabulary, shape, device, NUM_TRIED, trial.label_shape).stacked
    return trial.model.packs if device != "cpu" else stacks_exactly(trial)


def seconds_per_step(training: Training, seconds: float) -> float:
    """Return the median time of a training step, timed for so many seconds without the first few."""
    training.advance(stop_at=NUM_WARM_UP_STEPS + 1)
    num_steps, turns = 1, list[float]()
    until = time.monotonic() + seconds
    while (len(turns) < 3 or time.monotonic() < until) and training.step + num_steps < LONGEST:
        started = now(training.device.type)
        training.advance(stop_at=training.step + num_steps)
        taken = now(training.device.type) - started
        if taken < SHORTEST_TURN / 2:
            num_steps, turns = 2 * num_steps, []
        else:
            turns.append(taken / num_steps)
    return statistics.median(turns or [taken / num_steps])


def count_launches(training: Training) -> int:
    """Return the operations that a step starts one by one; none where it is recorded or compiled."""
    recorded = training.network.replayable and find_recorder(training.device) is not None
    if recorded or is_compiled(training.kernel):
        return 0
    with Calls() as calls:
        training.advance(stop_at=training.step + 1)
    return int(calls.num_calls)


def describe(seconds: float, floor: Floor) -> str:
    """Return a step's time beside its floor, such as `23 ms a step, 2.6× its floor (arithmetic 3.5, Adam 5.3 ms)`."""
    names = {"arithmetic": floor.arithmetic, "Adam": floor.adam, "states": floor.states, "launches": floor.launches}
    # Parts that do not matter would make the line longer than people read.
    parts = ", ".join(f"{name} {each * 1e3:.2g}" for name, each in names.items() if each >= 0.05 * floor.seconds)
    return f"{seconds * 1e3:.3g} ms a step, {seconds / floor.seconds:.1f}× its floor ({parts} ms)"


def _kind(device: str) -> str:
    return "cpu" if device == "cpu" else "gpu"
