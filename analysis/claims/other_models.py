"""Claims about Mamba and the transformer, and about the LSTM compared with the full bilinear model."""

from itertools import product

from orch.analysis.claims.claim import ALL_MODULI, DEPTHS, Claim, ClaimPart, ask
from orch.analysis.claims.comparison_conditions import NoWorse
from orch.analysis.claims.condition import Fails, Learns
from orch.analysis.claims.evidence import Question
from orch.analysis.published import VALIDATION
from orch.sweeps.experiments import data_efficiency, main


def _layers(depth: str) -> str:
    return f"{depth} layer{'s' * (depth != '1')}"


def _fits(model: str, words: str, moduli: tuple[int, ...], note: str = "") -> Claim:
    conditions = []
    for m in moduli:
        depths = tuple(ask("modular_addition", m, model, depth, split=VALIDATION) for depth in DEPTHS)
        conditions.append(Learns(f"m={m}", depths))
    return Claim(
        id=f"{model}-fits-addition",
        sentence=f"{words} fits modular addition at the lengths it was trained on, with some number of layers.",
        parts=(ClaimPart("at trained lengths, best depth", conditions),),
        note=note,
    )


def _fails(model: str, words: str) -> Claim:
    return Claim(
        id=f"{model}-fails-addition-at-500",
        sentence=f"{words} fails modular addition at 500 inputs, whatever its depth.",
        parts=(ClaimPart("at 500", _all_depths_fail("modular_addition", model)),),
    )


def _all_depths_fail(task: str, model: str) -> list[Fails]:
    return [
        Fails(f"m={m} ({_layers(depth)})", (ask(task, m, model, depth),)) for m, depth in product(ALL_MODULI, DEPTHS)
    ]


_TRANSFORMER_EVERYWHERE = Claim(
    id="transformer-fails-at-500",
    sentence="The transformer also fails every other task at 500 inputs.",
    parts=(
        ClaimPart("state machines", _all_depths_fail("state_machine", "transformer")),
        ClaimPart("arithmetic", _all_depths_fail("modular_arithmetic", "transformer")),
        ClaimPart(
            "dihedral groups",
            [Fails(f"m={m}", (ask("dihedral", m, "transformer", sweep="dihedral"),)) for m in ALL_MODULI],
        ),
    ),
)


def _from_examples(task: str, modulus: int, model: str) -> tuple[Question, ...]:
    return tuple(
        ask(task, modulus, model, sweep="data-efficiency", train_examples=size) for size in data_efficiency.SIZES
    )


_DATA_EFFICIENCY = Claim(
    id="bilinear-as-data-efficient-as-lstm",
    sentence="From fixed training sets, the full bilinear model does at least as well as the LSTM at 500 inputs.",
    parts=tuple(
        ClaimPart(
            f"{words}, mean over set sizes",
            [
                NoWorse(f"m={m}", _from_examples(task, m, "bilinear"), _from_examples(task, m, "lstm"))
                for m in data_efficiency.MODULI
            ],
        )
        for task, words in zip(main.TASKS, ("addition", "state machines", "arithmetic"), strict=True)
    ),
    note="The paper's figure gives no numbers; the sizes of the training sets are ours.",
    readings=data_efficiency.READINGS,
    readings_of="training",
)

CLAIMS = (
    _fits("mamba", "Mamba", ALL_MODULI),
    _fails("mamba", "Mamba"),
    _fits(
        "transformer",
        "The transformer",
        ALL_MODULI[:-1],
        note="Up to modulus 25: at 50 the published transformer does not fit at any depth (0.19 at best).",
    ),
    _fails("transformer", "The transformer"),
    _TRANSFORMER_EVERYWHERE,
    _DATA_EFFICIENCY,
)
