"""Replay: claims and cells decided per core-hour by `orch sweep --decide`, against the present order of trials.

Finished trials of the bundled results are run again in memory, on one core, one after the other: each takes the seconds
that it took, and shows its result then. The order is that of `orch sweep`, of `--cheapest-first`, or of `--decide`,
which is asked again after every few trials. Estimated seconds, which the orders go by, come from arithmetic alone, as
on an empty store. A claim is decided once its verdict is the one that all results give, and stays so; a cell likewise,
by the best over learning rates and seeds. What `--decide` leaves out may change an answer: those are counted, and
claims are named. The claim on angles needs weights and is decided by no order.

    python benchmarks/decide.py all --scale laptop
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orch.analysis.aggregate import COLUMNS
from orch.analysis.board import Board
from orch.analysis.claims import Verdict, judge_board
from orch.analysis.deciding import cell_values, claim_values
from orch.planning.estimate import Estimator
from orch.planning.packs import make_packs
from orch.planning.plan import PlannedTrial, TrialState
from orch.store import Store
from orch.sweeps.catalogue import resolve
from orch.sweeps.expansion import expand
from orch.sweeps.measured import Row, measured
from orch.sweeps.scales import SCALES, Scale
from orch.sweeps.selection import LEARNED, Results, rows_by_id

SHARES = (0.5, 0.8, 0.9, 1.0)
OPEN = (None, Verdict.NOT_ENOUGH)
HOURS = (0.1, 0.25, 0.5, 1.0)
Choose = Callable[[Mapping[str, Row], Sequence[PlannedTrial]], list[str]]
"""Given what is finished and what is left, returns the ids to run next, in order; none if nothing is worth it."""


class Replay:
    """The finished trials of a store, run again in an order that is chosen as results arrive."""

    def __init__(self, store: Store, sweeps: Sequence[str], scale: Scale):
        table = store.read("trials", [*COLUMNS, "seconds"])
        self.rows = rows_by_id(table)
        self.sweeps, self.scale = resolve(sweeps), scale
        self._estimator = Estimator()
        self.everything: set[str] = set()
        """Ids of the trials that a complete run of the sweeps finishes."""

    def left(self, finished: Mapping[str, Row], run: Mapping[str, Row]) -> list[PlannedTrial]:
        """Return the trials that a sweep would plan now and that the store has results of."""
        expansion = expand(self.sweeps, self.scale, Results(lambda: finished))
        return [
            PlannedTrial(
                key, each.trial, tuple(each.sweeps), (), TrialState.TO_DO, *self._estimator.estimate(each.trial)
            )
            for key, each in expansion.trials.items()
            if key in self.rows and key not in run
        ]

    def play(self, choose: Choose) -> tuple[list[tuple[str, float]], float]:
        """Return the trials in the order in which they finish with the seconds until then, and the time of choosing."""
        finished: dict[str, Row] = {}
        order, clock, chosen_in = [], 0.0, 0.0
        while True:
            left = self.left(finished, finished)
            started = time.perf_counter()
            chosen = choose(finished, left)
            chosen_in += time.perf_counter() - started
            if not chosen:
                return order, chosen_in
            for trial_id in chosen:
                finished[trial_id] = self.rows[trial_id]
                clock += self.rows[trial_id]["seconds"]
                order.append((trial_id, clock))

    def verdicts(self, finished: Mapping[str, Row]) -> dict[str, Any]:
        """Return the verdict on each claim, by the paper's reading."""
        judged = judge_board(Board(self.scale, finished))
        return {each.claim.id: each.verdict for each in judged.judgements}

    def cells(self, finished: Mapping[str, Row]) -> dict[Any, Any]:
        """Return whether each cell is learned by any trial; None while an untried learning rate may show that."""
        found: dict[Any, Any] = {}
        board = Board(self.scale, finished)
        for sweep in self.sweeps:
            for place, each in enumerate(board.cells(sweep)):
                scores = [measured(row, "ood_accuracy") for row in each.finished]
                learned = any(score is not None and score >= LEARNED for score in scores)
                tried = each.cell.learning_rates <= {row["learning_rate"] for row in each.finished}
                found[sweep, place] = True if learned else False if tried else None
        return found


def decided(
    replay: Replay, order: Sequence[tuple[str, float]], ask: Callable[[Mapping[str, Row]], dict[Any, Any]], every: int
) -> tuple[list[float], list[str]]:
    """Return the seconds after which each claim or cell has the answer that all results give, and the other answers."""
    final = ask({key: replay.rows[key] for key in replay.everything})
    since: dict[Any, float] = {}
    finished: dict[str, Row] = {}
    for number, (trial_id, clock) in enumerate(order, 1):
        finished[trial_id] = replay.rows[trial_id]
        if number % every == 0 or number == len(order):
            for key, answer in ask(finished).items():
                if answer == final.get(key) and answer not in OPEN:
                    since.setdefault(key, clock)
                else:
                    since.pop(key, None)
    answers = {key: answer for key, answer in ask(finished).items() if answer not in OPEN}
    others = [str(key) for key, answer in answers.items() if answer != final.get(key)]
    return sorted(since.values()), others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", nargs="*", default=["all"])
    parser.add_argument("--scale", default="laptop", choices=list(SCALES))
    parser.add_argument("--store", default="bundled")
    parser.add_argument("--again-after", type=int, default=10, help="trials after which --decide is asked again")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    scale = SCALES[given.scale]
    replay = Replay(Store.open(given.store), given.sweeps, scale)

    def in_order(cheapest_first: bool) -> Choose:
        def choose(finished: Mapping[str, Row], left: Sequence[PlannedTrial]) -> list[str]:
            return [trial.id for pack in make_packs(left, "cpu", 1, cheapest_first) for trial in pack]

        return choose

    def by_value(find: Callable[[Board, Sequence[PlannedTrial]], dict[str, float]]) -> Choose:
        def choose(finished: Mapping[str, Row], left: Sequence[PlannedTrial]) -> list[str]:
            values = find(Board(scale, finished), left)
            seconds = {each.id: each.seconds for each in left}
            best = sorted(values, key=lambda key: -values[key] / max(seconds[key], 0.001))
            return best[: given.again_after]

        return choose

    orders = {
        "orch sweep": in_order(False),
        "--cheapest-first": in_order(True),
        "--decide claims": by_value(claim_values),
        "--decide cells": by_value(lambda board, left: cell_values(board, replay.sweeps, left)),
    }
    report: dict[str, Any] = {}
    for name, choose in orders.items():
        order, seconds = replay.play(choose)
        if not replay.everything:  # the first order leaves nothing out
            replay.everything = {trial_id for trial_id, _ in order}
        found: dict[str, Any] = {"trials": len(order), "core_hours": order[-1][1] / 3600, "choosing_seconds": seconds}
        for kind, ask in (("claims", replay.verdicts), ("cells", replay.cells)):
            times, others = decided(replay, order, ask, given.again_after)
            found[kind] = {
                "decided": len(times),
                "per_core_hour": len(times) / (times[-1] / 3600),
                "core_hours": {f"{share:.0%}": times[max(0, round(share * len(times)) - 1)] / 3600 for share in SHARES},
                "within": {f"{hours} h": sum(each <= hours * 3600 for each in times) for hours in HOURS},
                "other_answers": others,
            }
        report[name] = found
    print(json.dumps(report, indent=2) if given.json else _text(report))


def _text(report: Mapping[str, Any]) -> str:
    lines = []
    for name, found in report.items():
        lines.append(
            f"{name}: {found['trials']} trials, {found['core_hours']:.2f} core-hours, chosen in"
            f" {found['choosing_seconds']:.1f} s"
        )
        for kind in ("claims", "cells"):
            each = found[kind]
            hours = ", ".join(f"{share} after {value:.2f} h" for share, value in each["core_hours"].items())
            within = ", ".join(f"{number} in {time}" for time, number in each["within"].items())
            others = each["other_answers"]
            named = f": {', '.join(others)}" if others and kind == "claims" else ""
            lines.append(f"    {each['decided']} {kind} decided, {each['per_core_hour']:.1f} per core-hour: {hours}")
            lines.append(f"        {within}; {len(others)} with another answer than all results give{named}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
