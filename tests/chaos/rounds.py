"""The rounds of a series: a seed determines the fault and the place of one; ten in a row cover real and plain runs."""

import contextlib
import math
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import harness, invariants
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.harness import Round
from tests.chaos.places import Bucket, Place, s3_server
from tests.chaos.plain import Orders
from tests.chaos.processes import Hung, Meter, Plain
from tests.chaos.proxy import Proxy

PLACES = ("disk", "s3", "hosts")
RAY_OF_TEN = 3
"""Rounds in ten that disturb real runs on Ray."""


@dataclass(frozen=True)
class Choice:
    """The fault and the place of a round."""

    seed: int
    fault: Fault
    place: str

    @property
    def replay(self) -> str:
        """The command that runs this round again."""
        words = f"python -m tests.chaos --seed {self.seed} --rounds 1"
        return f"{words} --fault {self.fault.name} --on {self.place}"


def choose(seed: int, fault: str | None = None, place: str | None = None, with_ray: bool = True) -> Choice:
    """Choose the round of a seed. Consecutive seeds go through all faults and places in turn."""
    pairs = [
        (each, name)
        for each in ([FAULTS[fault]] if fault else FAULTS.values())
        for name in each.on
        if not each.missing and (name == place if place else name != "hosts")
    ]
    real, plain = ([pair for pair in pairs if pair[0].ray == ray] for ray in (True, False))
    if not (with_ray and real and plain):
        chosen, turn = (real or plain) if with_ray else plain, seed
    else:
        tens, unit = divmod(seed, 10)
        is_real = unit < RAY_OF_TEN
        chosen = real if is_real else plain
        turn = tens * RAY_OF_TEN + unit if is_real else tens * (10 - RAY_OF_TEN) + unit - RAY_OF_TEN
    if not chosen:
        raise LookupError(f"no fault {fault or ''} on {place or 'any place'} that this machine allows: see --list")
    step = next(step for step in (7, 5, 3, 1) if math.gcd(step, len(chosen)) == 1)  # neighbours are unlike each other
    return Choice(seed, *chosen[turn * step % len(chosen)])


@dataclass
class Outcome:
    choice: Choice
    problems: list[str]
    seconds: float
    cpu_seconds: float
    folder: Path


class Series:
    """Runs rounds one after the other. What all of them need is made once: the expected results, an S3 server."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._port: int | None = None
        self._folder = harness.new_folder()
        self._expected = ""

    def __enter__(self) -> "Series":
        self._stack.callback(harness.remove_folder, self._folder)
        os.environ["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        process = Plain(
            Orders(location=str(self._folder / "expected"), output=str(self._folder / "expected.out"), task="expected")
        )
        assert process.wait() == 0, (self._folder / "expected.out").read_text()
        self._expected = str(self._folder / "expected")
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _place(self, name: str, seed: int, folder: Path) -> Iterator[Place]:
        if name == "disk":
            yield Place(folder)
        elif name == "hosts":
            from tests.chaos.cluster import cluster

            with cluster(folder) as place:
                yield place
        else:
            if self._port is None:
                self._port = self._stack.enter_context(s3_server())
            proxy = Proxy(self._port, seed)
            try:
                yield Bucket(folder, self._port, proxy)
            finally:
                proxy.close()

    def run(self, choice: Choice) -> Outcome:
        """Run a round, check it, and remove its folder if all is well."""
        began, cpu, folder = time.monotonic(), time.process_time(), harness.new_folder()
        with contextlib.ExitStack() as stack:
            try:
                place = stack.enter_context(self._place(choice.place, choice.seed, folder))
            except Exception:  # a cluster may not come up on a machine that is busy
                problem = f"its place could not be made: {traceback.format_exc()}"
                return Outcome(choice, [problem], time.monotonic() - began, time.process_time() - cpu, folder)
            round = Round(choice.seed, choice.fault.name, place, self._expected)
            meter = Meter(round.mark)
            try:
                problems = self._disturb_and_check(round, choice)
            finally:
                round.end()
            (round.folder / "events").write_text("\n".join([*round.events, *problems]) + "\n")
            if not problems:
                harness.remove_folder(round.folder)
        cpu = meter.stop() + time.process_time() - cpu
        return Outcome(choice, problems, time.monotonic() - began, cpu, folder)

    def _disturb_and_check(self, round: Round, choice: Choice) -> list[str]:
        try:
            choice.fault.run(round)
            problem = round.finish()
            return ([problem] if problem else []) + invariants.check(round)
        except Hung as hung:
            return [str(hung)]
        except Exception:
            return [f"the round itself failed: {traceback.format_exc()}"]
