"""Claims about a frozen random network of which only the readout is trained, on parity, tested at 400 inputs."""

from itertools import product

from orch.analysis.claims.claim import TERMS, Claim, ClaimPart, ask
from orch.analysis.claims.evidence import Question
from orch.analysis.claims.reaching import Fails, Learns
from orch.sweeps.experiments.additive import READINGS

LENGTHS = (10, 20, 50)


def _two_examples(length: int, terms: str = "none") -> Question:
    return ask(
        "modular_addition",
        2,
        "block_diagonal",
        sweep="frozen-parity",
        additive=terms,
        train_examples=2,
        train_length=length,
    )


CLAIMS = (
    Claim(
        id="frozen-network-learns-parity",
        sentence="A frozen random network without additive terms learns parity from two examples.",
        parts=(
            ClaimPart(
                "at 400, by length of the examples",
                [Learns((_two_examples(length),), f"length {length}") for length in LENGTHS],
            ),
        ),
    ),
    Claim(
        id="frozen-network-fails-with-additive-terms",
        sentence="With additive terms, of any kind, a frozen random network does not learn parity from two examples.",
        parts=(
            ClaimPart(
                "at 400, by length of the examples",
                [
                    Fails(_two_examples(length, terms), f"length {length} ({terms})")
                    for terms, length in product(TERMS, LENGTHS)
                ],
                len(TERMS),
            ),
        ),
        note="From a hundred examples constants alone reach 0.87 in the paper; that is not claimed either way.",
        readings=READINGS,
    ),
)
