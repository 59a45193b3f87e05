"""Claims of other publications about the states that a model can track, asked of the atlas: each with its source.

Most are theorems about one set of weights at every length. Here they are judged as predictions: a model that cannot
fails at the test length with every seed, and one that can learns with at least one. A failure counts only if the same
model has learned some task of the atlas, which shows that it trains.

That a transformer of fixed depth fails word problems is not asked: the atlas has one with a learned vector for each
position, and those beyond the trained lengths are untrained, so that it would fail in any case.
"""

from collections.abc import Iterable

from orch.analysis.claims.claim import Claim, ClaimPart
from orch.analysis.claims.condition import Condition, FailsThoughItLearns, Learns
from orch.analysis.claims.evidence import ATLAS, Question
from orch.analysis.published import Key, key_of
from orch.models import REGISTRY
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import atlas
from orch.sweeps.selection import Results

MERRILL_2024 = "Merrill et al., 2024, arXiv:2404.08819"
SARROF = "Sarrof et al., 2024, arXiv:2405.17394"
GRAZZI = "Grazzi et al., 2025, arXiv:2411.12537"
SIEMS = "Siems et al., 2025, arXiv:2502.10297"
TERZIC = "Terzić et al., 2025, arXiv:2412.19350"
BECK = "Beck et al., 2024, arXiv:2405.04517"
DELETANG = "Delétang et al., 2023, arXiv:2207.02098"
SHAKERINAVA = "Shakerinava et al., 2026, arXiv:2603.01959"

Model = tuple[str, str]
"""Name of a model and of its variant in the atlas."""

POSITIVE_DIAGONAL: tuple[Model, ...] = (("mamba", "1"), ("rg_lru", "1"), ("mlstm", "1"))
POSITIVE: tuple[Model, ...] = (
    *POSITIVE_DIAGONAL,
    ("delta_net", ""),
    ("gated_delta_net", ""),
    ("delta_product", "2"),
)
NEGATIVE: tuple[Model, ...] = (("mamba", "negative"), ("delta_net", "negative"), ("gated_delta_net", "negative"))
DIAGONAL: tuple[Model, ...] = (*POSITIVE_DIAGONAL, ("mamba", "negative"), ("block_diagonal", "1"))
"""Without the LRU, which by theory learns no task of the atlas: its failures alone are no evidence."""
ROTATIONS: tuple[Model, ...] = (("rotation", ""), ("unitary_diagonal", "1"))
NONLINEAR: tuple[Model, ...] = (("rnn", ""), ("lstm", ""))
TWO, FOUR = ("delta_product", "2 negative"), ("delta_product", "4 negative")

PARITY, FLIP_FLOP, EVEN_PAIRS = "Parity check", "Flip-flop 2", "Even pairs"
ADDITION, NAVIGATION, ARITHMETIC = "Modular addition 5", "Cycle navigation 5", "Modular arithmetic 3"
"""Tasks by the names that they have on the axis of the atlas, and their groups by the names of these."""


def _keys() -> dict[tuple[str, Model], Key]:
    """Return the key of every cell of the atlas, by task and model."""
    cells: Iterable[Cell] = atlas.cells(atlas.SMALL, Results.none())
    return {
        (atlas.short_title(cell.example.task), (cell.example.model.name, cell.variant)): key_of(cell) for cell in cells
    }


_KEYS = _keys()


def _title(model: Model) -> str:
    name, variant = model
    return REGISTRY[name].title_of(variant)


def _learn(models: Iterable[Model], *tasks: str) -> list[Condition]:
    """Return the conditions that each of these models learns each of these tasks."""
    return [Learns(f"{_title(model)} on {task}", (_question(task, model),)) for model in models for task in tasks]


def _fail(models: Iterable[Model], *tasks: str) -> list[Condition]:
    """Return the conditions that each of these models fails each of these tasks, and learns another."""
    found: list[Condition] = []
    for model in models:
        others = tuple(_question(*place) for place in _KEYS if place[1] == model)
        for task in tasks:
            label = f"{_title(model)} on {task}"
            found.append(FailsThoughItLearns(label, (_question(task, model),), others=others))
    return found


def _question(task: str, model: Model) -> Question:
    return Question(ATLAS, _KEYS[task, model])


def _part(title: str, conditions: list[Condition]) -> ClaimPart:
    """Return a part of which every condition must have results."""
    return ClaimPart(title, conditions, len(conditions))


CLAIMS = (
    Claim(
        id="positive-eigenvalues-fail-parity",
        sentence="Linear recurrences whose transitions have only eigenvalues in [0, 1] do not track parity.",
        parts=(_part("[0, 1]", _fail(POSITIVE, PARITY)),),
        source=f"{SARROF}; {GRAZZI}",
    ),
    Claim(
        id="negative-eigenvalues-learn-parity",
        sentence="With eigenvalues in [-1, 1] the same recurrences learn parity.",
        parts=(_part("[-1, 1]", _learn(NEGATIVE, PARITY)),),
        source=GRAZZI,
    ),
    Claim(
        id="real-eigenvalues-fail-counting",
        sentence="Real eigenvalues do not count modulo 5 in one layer; a product of two reflections does.",
        parts=(
            _part("real", _fail(NEGATIVE, NAVIGATION)),
            _part("two reflections", _learn([TWO], NAVIGATION)),
        ),
        source=GRAZZI,
    ),
    Claim(
        id="one-reflection-fails-s5",
        sentence="One reflection for each input does not track S5 in one layer, and four do.",
        parts=(
            _part("one", _fail([("delta_net", "negative")], "S5:generators")),
            _part("four", _learn([FOUR], "S5:generators")),
        ),
        source=SIEMS,
        note="The inputs are a swap and a cycle of five: swaps alone would be one reflection each.",
    ),
    Claim(
        id="two-reflections-turn-solids",
        sentence="Two reflections for each input track the groups that turn a solid: A4, S4 and A5.",
        parts=(_part("two", _learn([TWO], "A4", "S4:generators", "A5:generators")),),
        source=SIEMS,
    ),
    Claim(
        id="sd-ssm-tracks-where-diagonal-fails",
        sentence="SD-SSM learns automata with groups that do not commute, on which diagonal models fail.",
        parts=(
            _part("SD-SSM", _learn([("sd_ssm", "")], "S3", "A4", "A5:generators")),
            _part("diagonal", _fail(DIAGONAL, "S3", "A4", "A5:generators")),
        ),
        source=TERZIC,
    ),
    Claim(
        id="slstm-tracks-and-mlstm-does-not",
        sentence="sLSTM, whose memory cells are mixed, learns parity; mLSTM, which can be parallelised, does not.",
        parts=(
            _part("sLSTM", _learn([("slstm", "1")], PARITY)),
            _part("mLSTM", _fail([("mlstm", "1")], PARITY)),
        ),
        source=BECK,
    ),
    Claim(
        id="diagonal-fails-non-solvable",
        sentence="Diagonal recurrences, and linear ones that do not depend on the input, track no group that is not"
        " solvable.",
        parts=(_part("diagonal", _fail(DIAGONAL, "A5:generators", "S5:generators")),),
        source=MERRILL_2024,
    ),
    Claim(
        id="nonlinear-recurrences-track-s5",
        sentence="A nonlinear recurrence tracks a group that is not solvable, in one layer.",
        parts=(_part("nonlinear", _learn(NONLINEAR, "A5:generators", "S5:generators")),),
        source=MERRILL_2024,
    ),
    Claim(
        id="positive-diagonal-learns-flip-flop",
        sentence="A diagonal with positive eigenvalues learns the flip-flop, which only keeps and resets.",
        parts=(_part("[0, 1]", _learn(POSITIVE_DIAGONAL, FLIP_FLOP)),),
        source=SARROF,
    ),
    Claim(
        id="recurrent-networks-learn-regular-tasks",
        sentence="RNN and LSTM learn the regular tasks: parity, even pairs, navigation on a cycle, arithmetic.",
        parts=(_part("nonlinear", _learn(NONLINEAR, PARITY, EVEN_PAIRS, NAVIGATION, ARITHMETIC)),),
        source=DELETANG,
    ),
    Claim(
        id="rotations-learn-commutative-groups-only",
        sentence="One layer of commuting rotations learns commutative groups, and no others.",
        parts=(
            _part("commutative", _learn(ROTATIONS, PARITY, ADDITION)),
            _part("others", _fail(ROTATIONS, "S3", "Q8", "A4")),
        ),
        source=SHAKERINAVA,
    ),
)
