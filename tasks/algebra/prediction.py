"""What theory says about a family of models on a task, given the task's algebra: can, cannot, or it depends.

"Can" means that there is one set of weights that is right at every length, in arithmetic of finite precision; it does
not mean that training finds it. Inputs act on the model's state as the family says, once per symbol; layers are
stacked with functions of one position between them.
"""

from dataclasses import dataclass
from enum import StrEnum

from orch.tasks.algebra.analysis import Algebra

SARROF = "Sarrof et al., 2024"
GRAZZI = "Grazzi et al., 2025"
SHAKERINAVA = "Shakerinava et al., 2026"
SIEMS = "Siems et al., 2025"
MERRILL = "Merrill et al., 2024"
HIERARCHY = "Merrill et al., 2020"
BARRINGTON = "Barrington, 1989"
SHORTCUTS = "Liu et al., 2023"
KROHN_RHODES = "Krohn and Rhodes, 1965"
REFERENCES = {
    SARROF: "The Expressive Capacity of State Space Models: A Formal Language Perspective, arXiv:2405.17394",
    GRAZZI: "Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues, arXiv:2411.12537",
    SHAKERINAVA: "The Expressive Limits of Diagonal SSMs for State-Tracking, arXiv:2603.01959",
    SIEMS: "DeltaProduct: Improving State-Tracking in Linear RNNs via Householder Products, arXiv:2502.10297",
    MERRILL: "The Illusion of State in State-Space Models, arXiv:2404.08819",
    HIERARCHY: "A Formal Hierarchy of RNN Architectures, arXiv:2004.08500",
    BARRINGTON: "Bounded-Width Polynomial-Size Branching Programs Recognize Exactly Those Languages in NC1, JCSS 38",
    SHORTCUTS: "Transformers Learn Shortcuts to Automata, arXiv:2210.10749",
    KROHN_RHODES: "Algebraic Theory of Machines I, Transactions of the American Mathematical Society 116",
}
"""Titles of what a prediction cites."""


class Family(StrEnum):
    """Families of models, by what an input can do to the state."""

    POSITIVE_DIAGONAL = "positive_diagonal"
    SIGNED_DIAGONAL = "signed_diagonal"
    ROTATIONS = "rotations"
    COMPLEX_DIAGONAL = "complex_diagonal"
    REFLECTIONS = "reflections"
    DENSE = "dense"
    NONLINEAR = "nonlinear"
    BOUNDED_DEPTH = "bounded_depth"

    @property
    def about(self) -> str:
        return _ABOUT[self]


_ABOUT = {
    Family.POSITIVE_DIAGONAL: "real diagonal, eigenvalues in [0, 1] (Mamba, GLA)",
    Family.SIGNED_DIAGONAL: "real diagonal, eigenvalues in [-1, 1]",
    Family.ROTATIONS: "commuting rotations, which forget nothing",
    Family.COMPLEX_DIAGONAL: "complex diagonal, |eigenvalues| at most 1: rotations that may forget",
    Family.REFLECTIONS: "products of n reflections (DeltaNet for n = 1, DeltaProduct)",
    Family.DENSE: "dense matrices",
    Family.NONLINEAR: "nonlinear recurrences (RNN, LSTM)",
    Family.BOUNDED_DEPTH: "transformers, and linear SSMs such as S4, of bounded depth",
}


class Verdict(StrEnum):
    CAN = "can"
    CANNOT = "cannot"
    DEPENDS = "depends"


@dataclass(frozen=True)
class Prediction:
    verdict: Verdict
    reason: str
    citation: str
    """Author and year, several with "; " between them; `REFERENCES` has the titles."""
    layers: int | None = None
    """Layers that suffice; None if theory says only that some number does, or if nothing suffices."""


def predict(algebra: Algebra, family: Family, layers: int | None = None, reflections: int | None = None) -> Prediction:
    """Return what theory says about a family on a task with this algebra.

    `layers` is the number of layers of the model; None asks about any constant number. `reflections` is n of the family
    of products of reflections, of which None allows any number.
    """
    if family in (Family.DENSE, Family.NONLINEAR):
        return _universal(family)
    if family is Family.BOUNDED_DEPTH:
        return _bounded_depth(algebra)
    if family is Family.REFLECTIONS:
        return _reflections(algebra, layers, reflections)
    found = _diagonal(algebra, family)
    if layers is None or found.verdict is not Verdict.CAN or (found.layers is not None and layers >= found.layers):
        return found
    if algebra.derived_length is not None and layers < algebra.derived_length:
        reason = f"commuting layers need at least {algebra.derived_length}, the length of the group's derived series"
        return Prediction(Verdict.CANNOT, reason, SHAKERINAVA, found.layers)
    return Prediction(Verdict.DEPENDS, f"how many layers suffice is not computed: {found.reason}", found.citation)


def _diagonal(algebra: Algebra, family: Family) -> Prediction:
    """Return the verdict for any number of layers. For groups, `layers` is the least number that suffices."""
    if family is Family.ROTATIONS and not algebra.is_group:
        reason = "some input merges states, but rotations of finite precision form a group, which forgets nothing"
        return Prediction(Verdict.CANNOT, reason, KROHN_RHODES)
    resets = 1 if algebra.only_resets else None
    if algebra.is_aperiodic:
        reason = "the monoid is aperiodic (star-free): layers of gates that keep or reset are enough"
        return Prediction(Verdict.CAN, reason, SARROF, resets)
    if family is Family.POSITIVE_DIAGONAL:
        if algebra.is_aperiodic is None:
            return _unknown(algebra, SARROF)
        reason = "a group in the monoid counts in a cycle, and positive eigenvalues cannot even count modulo 2"
        return Prediction(Verdict.CANNOT, reason, f"{SARROF}; {GRAZZI}")
    if family is Family.SIGNED_DIAGONAL:
        return _signed(algebra)
    if algebra.is_solvable is None:
        return _unknown(algebra, SHAKERINAVA)
    if not algebra.is_solvable:
        reason = "a group in the monoid is not solvable, and no number of commuting layers makes it up"
        return Prediction(Verdict.CANNOT, reason, SHAKERINAVA)
    if algebra.is_group:
        reason = "a solvable group needs one layer of commuting rotations for each step of its derived series"
        length = 1 if algebra.is_commutative else algebra.derived_length
        return Prediction(Verdict.CAN, reason, SHAKERINAVA, length)
    reason = "all groups in the monoid are solvable: layers of rotations and resets make it up"
    return Prediction(Verdict.CAN, reason, f"{KROHN_RHODES}; {SHAKERINAVA}")


def _signed(algebra: Algebra) -> Prediction:
    if algebra.exponent & (algebra.exponent - 1):
        prime = next(each for each in range(3, algebra.exponent + 1, 2) if algebra.exponent % each == 0)
        reason = f"the task counts modulo {prime}, and real eigenvalues count only modulo powers of 2"
        return Prediction(Verdict.CANNOT, reason, GRAZZI)
    if algebra.num_elements is None:
        return _unknown(algebra, GRAZZI)
    reason = "all groups in the monoid have orders that are powers of 2: layers of signs and resets make it up"
    layers = 1 if algebra.is_group and algebra.exponent == 2 else None
    return Prediction(Verdict.CAN, reason, f"{KROHN_RHODES}; {GRAZZI}", layers)


def _reflections(algebra: Algebra, layers: int | None, reflections: int | None) -> Prediction:
    if algebra.is_group:
        assert algebra.num_swaps is not None
        if reflections is None or reflections >= algebra.num_swaps:
            swaps = f"at most n = {algebra.num_swaps} swaps make up each input"
            reason = f"a swap of two states is a reflection, and {swaps}; fewer if the group permutes fewer things"
            return Prediction(Verdict.CAN, reason, GRAZZI, 1)
        if layers is None or layers >= 4:
            reason = "a group of permutations needs no more than 4 layers, even with one reflection at a time"
            return Prediction(Verdict.CAN, reason, SIEMS, 4)
    elif layers is None:
        reason = "enough layers recognise every regular language, with enough factors or with gates"
        return Prediction(Verdict.CAN, reason, f"{GRAZZI}; {SIEMS}")
    reason = "some number of layers and reflections is enough; whether this one is, is not computed"
    return Prediction(Verdict.DEPENDS, reason, f"{GRAZZI}; {SIEMS}")


def _universal(family: Family) -> Prediction:
    if family is Family.DENSE:
        reason = "a matrix of zeros and ones per input moves a one-hot state as the table says"
        return Prediction(Verdict.CAN, reason, MERRILL, 1)
    return Prediction(Verdict.CAN, "saturated units are a finite automaton", HIERARCHY, 1)


def _bounded_depth(algebra: Algebra) -> Prediction:
    if algebra.is_solvable is None:
        return _unknown(algebra, MERRILL)
    if not algebra.is_solvable:
        reason = (
            "the task is complete for NC1, and these models are in TC0 (logarithmic precision): not unless TC0 = NC1"
        )
        return Prediction(Verdict.CANNOT, reason, f"{BARRINGTON}; {MERRILL}")
    reason = "at each length a constant depth is enough, but the weights may depend on the length"
    return Prediction(Verdict.DEPENDS, reason, SHORTCUTS)


def _unknown(algebra: Algebra, citation: str) -> Prediction:
    return Prediction(Verdict.DEPENDS, f"the monoid has more than {algebra.limit:,} elements", citation)
