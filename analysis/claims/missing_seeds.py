"""The seeds that would settle undecided claims: the cells that need them, and a sweep of them as a file."""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orch.analysis.board import Board, BoardCell
from orch.analysis.claims.condition import Condition
from orch.analysis.claims.evidence import cells_by_key
from orch.analysis.claims.judging import ClaimsAtScale
from orch.analysis.claims.sureness import SeedFinding
from orch.sweeps.trial import Trial

WRITTEN_BY = "Written by orch claims --plan."
"""A sentence in every sweep file that `sweep_file` writes, which may be replaced."""
MOST_SEEDS = 16
"""Most seeds of a cell that are planned at once: the shares that the number was computed from will change."""
FEWEST_SEEDS = 2
"""Fewest seeds to add to a cell while it cannot be computed how many would make it sure."""


@dataclass(frozen=True, slots=True)
class MissingSeeds:
    """The seeds of one cell that undecided claims need."""

    trial: Trial
    """A trial of the cell at its chosen learning rate."""
    seeds: tuple[int, ...]
    claims: tuple[str, ...]
    """Ids of the claims that need them."""

    @property
    def trials(self) -> list[Trial]:
        """The trials to run."""
        return [replace(self.trial, init_seed=seed, data_seed=seed) for seed in self.seeds]


def missing_seeds(board: Board, judged: ClaimsAtScale) -> list[MissingSeeds]:
    """Return the seeds that would settle the undecided claims of a board, each cell once.

    A claim without a condition that seeds could settle needs results of its sweeps first, and nothing here.
    """
    sweeps = {sweep for each in judged.judgements for sweep in each.claim.sweeps}
    by_key = cells_by_key(board, sweeps)
    found: dict[Trial, tuple[set[int], dict[str, None]]] = {}

    def cells_of(condition: Condition, reading: str) -> Iterable[BoardCell]:
        for question in condition.questions:
            places = ((question.sweep, question.key, name) for name in (reading, ""))
            if cell := next((by_key[place] for place in places if place in by_key), None):
                yield cell

    for judgement in judged.judgements:
        for reading, finding in judgement.sureness.settling:
            cells = [cell for cell in cells_of(finding.condition, reading) if cell.choice is not None]
            known = [set(board.every_seed(cell)) for cell in cells]
            wanted = _wanted(finding, known)
            for cell, has in zip(cells, known, strict=True):
                if lacking := wanted - has:
                    seeds, claims = found.setdefault(_at_chosen_rate(cell), (set(), {}))
                    seeds |= lacking
                    claims[judgement.claim.id] = None
    return [MissingSeeds(trial, tuple(sorted(seeds)), tuple(claims)) for trial, (seeds, claims) in found.items()]


def seeds_to_add(more: int | None, has: int) -> int:
    """Return how many seeds to add: as many as were computed, or otherwise as many again as there are."""
    return max(FEWEST_SEEDS, has) if more is None else more


def _wanted(finding: SeedFinding, known: Sequence[set[int]]) -> set[int]:
    """Return the seeds that a condition needs besides those it has: first those that some of its cells have."""
    more = seeds_to_add(finding.more, finding.num_seeds)
    others = set().union(*known).difference(finding.seeds)
    some = sorted(others, key=lambda seed: (-sum(seed in each for each in known), seed))
    # A seed that every cell has and the condition could not use would not help it.
    usable = [seed for seed in some if not all(seed in each for each in known)]
    new = (seed for seed in itertools.count() if all(seed not in each for each in known))
    return set(itertools.islice(itertools.chain(usable, new), min(more, MOST_SEEDS)))


def _at_chosen_rate(cell: BoardCell) -> Trial:
    assert cell.choice is not None, "a cell with seeds has a chosen learning rate"
    return replace(cell.cell.example, learning_rate=cell.choice.learning_rate, init_seed=0, data_seed=0)


def sweep_file(missing: Iterable[MissingSeeds], confidence: float) -> str:
    """Write the missing seeds as a sweep file, which `orch plan` and `orch sweep` take."""
    lines = [
        f'"""Seeds that would settle undecided claims with {confidence:.0%} confidence.',
        "",
        f"{WRITTEN_BY} Each cell has the settings of one model on one task at the learning rate that",
        "was chosen for it, and the seeds to add.",
        '"""',
        "",
        "import json",
        "from dataclasses import replace",
        "",
        "from orch.sweeps.cell import Cell",
        "from orch.sweeps.trial import Trial",
        "",
        "CELLS = [",
    ]
    for each in missing:
        lines.append(f"    # {', '.join(each.claims)}")
        lines.append(f"    ({json.dumps(each.trial.to_dict())!r}, {each.seeds}),")
    lines += [
        "]",
        "",
        "",
        "def cells(scale, results):",
        "    for settings, seeds in CELLS:",
        "        trial = Trial.from_dict(json.loads(settings))",
        "        yield Cell([replace(trial, init_seed=seed, data_seed=seed) for seed in seeds])",
    ]
    return "\n".join(lines) + "\n"
