"""Claims about a frozen random network, of which only the readout is trained: parity, tested at 400 inputs."""

from itertools import product

from orch.analysis.claims.claim import TERMS, Claim, ClaimPart
from orch.analysis.claims.condition import Fails, Learns
from orch.analysis.claims.evidence import Question
from orch.analysis.published import Key
from orch.sweeps.experiments.additive import READINGS

LENGTHS = (10, 20, 50)


def _two_examples(length: int, terms: str = "none") -> tuple[Question]:
    key = Key("modular_addition", "block_diagonal", additive=terms, train_examples=2, train_length=length)
    return (Question("frozen-parity", key),)


CLAIMS = (
    Claim(
        id="frozen-network-learns-parity",
        sentence="A frozen random network without additive terms learns parity from two examples.",
        parts=(
            ClaimPart(
                "at 400, by length of the examples",
                [Learns(f"length {length}", _two_examples(length)) for length in LENGTHS],
            ),
        ),
    ),
    Claim(
        id="frozen-network-fails-with-additive-terms",
        sentence="With additive terms of any kind, a frozen random network does not learn parity from two examples.",
        parts=(
            ClaimPart(
                "at 400, by length of the examples",
                [
                    Fails(f"length {length} ({terms})", _two_examples(length, terms))
                    for terms, length in product(TERMS, LENGTHS)
                ],
                len(TERMS),
            ),
        ),
        note="The claim does not cover a hundred examples, from which constant terms alone reach 0.87 in the paper.",
        readings=READINGS,
    ),
)
