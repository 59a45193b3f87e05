"""The prediction of theory for a family of models on a task, from the task's algebra: can, cannot, or it depends.

"Can" means that there is one set of weights that is right at every length, in arithmetic of finite precision; it does
not mean that training finds it. Inputs act on the model's state as the family says, once per symbol; layers are
stacked with functions of one position between them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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
EBRAHIMI = "Ebrahimi and Memisevic, 2025"
BOYD = "Boyd and Chua, 1985"
PERLES = "Perles et al., 1963"
REFERENCES = {
    SARROF: "The Expressive Capacity of State Space Models: A Formal Language Perspective, arXiv:2405.17394",
    GRAZZI: "Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues, arXiv:2411.12537",
    SHAKERINAVA: "The Expressive Limits of Diagonal SSMs for State-Tracking, arXiv:2603.01959",
    SIEMS: "DeltaProduct: Improving State-Tracking in Linear RNNs via Householder Products, arXiv:2502.10297",
    MERRILL: "The Illusion of State in State-Space Models, arXiv:2404.08819",
    HIERARCHY: "A Formal Hierarchy of RNN Architectures, arXiv:2004.08500",
    BARRINGTON: "Bounded-Width Polynomial-Size Branching Programs Recognize Exactly Those Languages in NC1, JCSS 38",
    SHORTCUTS: "Transformers Learn Shortcuts to Automata, arXiv:2210.10749",
    EBRAHIMI: "Revisiting Bi-Linear State Transitions in Recurrent Neural Networks, NeurIPS 2025",
    BOYD: "Fading Memory and the Problem of Approximating Nonlinear Operators with Volterra Series, IEEE TCAS 32",
    PERLES: "The Theory of Definite Automata, IEEE Transactions on Electronic Computers EC-12",
    KROHN_RHODES: "Algebraic Theory of Machines I, Transactions of the American Mathematical Society 116",
}
"""Titles of what a prediction cites."""


class Family(StrEnum):
    """Families of models, by what an input can do to the state."""

    POSITIVE_DIAGONAL = "positive_diagonal"
    SIGNED_DIAGONAL = "signed_diagonal"
    POSITIVE_REFLECTIONS = "positive_reflections"
    ROTATIONS = "rotations"
    COMPLEX_DIAGONAL = "complex_diagonal"
    REFLECTIONS = "reflections"
    DENSE = "dense"
    NONLINEAR = "nonlinear"
    BOUNDED_DEPTH = "bounded_depth"
    FADING = "fading_memory"

    @property
    def about(self) -> str:
        return _ABOUT[self]


_ABOUT = {
    Family.POSITIVE_DIAGONAL: "real diagonal, eigenvalues in [0, 1] (Mamba, GLA)",
    Family.SIGNED_DIAGONAL: "real diagonal, eigenvalues in [-1, 1]",
    Family.POSITIVE_REFLECTIONS: "products of generalised reflections, eigenvalues in [0, 1] (DeltaNet as published)",
    Family.ROTATIONS: "commuting rotations, which forget nothing",
    Family.COMPLEX_DIAGONAL: "complex diagonal, |eigenvalues| at most 1: rotations that may forget",
    Family.REFLECTIONS: "products of n reflections, eigenvalues in [-1, 1] (DeltaNet for n = 1, DeltaProduct)",
    Family.DENSE: "dense matrices",
    Family.NONLINEAR: "nonlinear recurrences (RNN, LSTM)",
    Family.BOUNDED_DEPTH: "transformers of bounded depth",
    Family.FADING: "linear and the same for every input, |eigenvalues| below 1 (LRU)",
}


class Transitions(NamedTuple):
    """The ways in which a model's inputs can change its state: the arguments of `predict` after the task's algebra."""

    family: Family
    layers: int | None = 1
    reflections: int | None = None
    size: int | None = None
    adds: bool = True
    rank: int | None = None


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


def predict(
    algebra: Algebra,
    family: Family,
    layers: int | None = None,
    reflections: int | None = None,
    size: int | None = None,
    adds: bool = True,
    rank: int | None = None,
) -> Prediction:
    """Return what theory says about a family on a task with this algebra.

    `layers` is the number of layers of the model; None asks about any constant number. `reflections` is n of the family
    of products of reflections, `size` that of dense matrices, and `rank` the number of rank-one terms that these are
    made of, all inputs together; None allows any number. `adds` says whether inputs also add to the state, which can
    then be written anew.
    """
    if family is Family.NONLINEAR:
        return Prediction(Verdict.CAN, "saturated units are a finite automaton", HIERARCHY, 1)
    if family is Family.DENSE:
        return _dense(algebra, size, rank)
    if family is Family.FADING:
        return _fading(algebra)
    if family is Family.BOUNDED_DEPTH:
        return _bounded_depth(algebra)
    if family is Family.REFLECTIONS:
        return _reflections(algebra, layers, reflections)
    if layers == 1 and not adds and not algebra.is_commutative:
        reason = "a product of diagonal matrices or commuting rotations does not depend on the order of the inputs"
        return Prediction(Verdict.CANNOT, reason, EBRAHIMI)
    found = _diagonal(algebra, family)
    if layers is None or found.verdict is not Verdict.CAN or (found.layers is not None and layers >= found.layers):
        return found
    if algebra.derived_length is not None and layers < algebra.derived_length:
        reason = f"commuting layers need at least {algebra.derived_length}, the length of the group's derived series"
        return Prediction(Verdict.CANNOT, reason, SHAKERINAVA, found.layers)
    if family is Family.SIGNED_DIAGONAL and layers == 1 and algebra.longest_period > 2:
        return _real_eigenvalues(algebra)
    return Prediction(Verdict.DEPENDS, f"how many layers suffice is not computed: {found.reason}", found.citation)


def _diagonal(algebra: Algebra, family: Family) -> Prediction:
    """Return the verdict for any number of layers. For groups, `layers` is the least number that suffices.

    If an input has several symbols, the number of layers is not computed: what is pending takes room as well.
    """
    is_one_symbol = algebra.tokens_per_input == 1
    if family is Family.ROTATIONS and not algebra.is_group:
        reason = "some input merges states, but rotations of finite precision form a group, which forgets nothing"
        return Prediction(Verdict.CANNOT, reason, KROHN_RHODES)
    resets = 1 if algebra.only_resets and is_one_symbol else None
    if algebra.is_aperiodic:
        reason = "the monoid is aperiodic (star-free): layers of gates that keep or reset are enough"
        return Prediction(Verdict.CAN, reason, SARROF, resets)
    if family in (Family.POSITIVE_DIAGONAL, Family.POSITIVE_REFLECTIONS):
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
        return Prediction(Verdict.CAN, reason, SHAKERINAVA, length if is_one_symbol else None)
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
    layers = 1 if algebra.is_group and algebra.exponent == 2 and algebra.tokens_per_input == 1 else None
    return Prediction(Verdict.CAN, reason, f"{KROHN_RHODES}; {GRAZZI}", layers)


def _reflections(algebra: Algebra, layers: int | None, reflections: int | None) -> Prediction:
    is_one_symbol = algebra.tokens_per_input == 1
    if algebra.only_resets and is_one_symbol:
        return Prediction(Verdict.CAN, "a key that is erased and written anew is a reset", GRAZZI, 1)
    if algebra.space is not None and is_one_symbol:
        least = algebra.space.num_reflections
        if reflections is None or reflections >= least:
            reason = f"the group acts on a space in which at most n = {least} reflections make up each input"
            return Prediction(Verdict.CAN, reason, f"{GRAZZI}; {SIEMS}", 1)
        if layers is None or layers >= 4:
            reason = "a group of permutations needs no more than 4 layers, even with one reflection at a time"
            return Prediction(Verdict.CAN, reason, SIEMS, 4)
    elif layers is None:
        reason = "enough layers recognise every regular language, with enough factors or with gates"
        return Prediction(Verdict.CAN, reason, f"{GRAZZI}; {SIEMS}")
    if layers == reflections == 1 and is_one_symbol and algebra.longest_period > 2:
        return _real_eigenvalues(algebra)
    reason = "some number of layers and reflections is enough; whether this one is, is not computed"
    return Prediction(Verdict.DEPENDS, reason, f"{GRAZZI}; {SIEMS}")


def _real_eigenvalues(algebra: Algebra) -> Prediction:
    """Return the verdict for one layer of symmetric matrices on a task that one input takes around a longer cycle."""
    reason = (
        f"one input, repeated, goes around a cycle of {algebra.longest_period} states, and a matrix of real eigenvalues"
        " only back and forth between two"
    )
    return Prediction(Verdict.CANNOT, reason, GRAZZI)


def _dense(algebra: Algebra, size: int | None, rank: int | None) -> Prediction:
    states, is_one_symbol = algebra.states_between_symbols, algebra.tokens_per_input == 1
    space = algebra.space.dimension if algebra.space is not None and is_one_symbol else states
    if rank is not None:
        return _factored(algebra, rank, states if algebra.is_commutative else min(states, space))
    if size is None or size >= states:
        reason = "a matrix of zeros and ones per symbol moves a one-hot state as the table says"
        return Prediction(Verdict.CAN, reason, MERRILL, 1)
    if size >= space:
        reason = f"the group acts on spaces of {space} dimensions, one for each block"
        return Prediction(Verdict.CAN, reason, MERRILL, 1)
    pending = "" if is_one_symbol else ", which include the symbols that are pending"
    reason = f"blocks of {states} would be enough for all states{pending}; whether smaller ones are, is not computed"
    return Prediction(Verdict.DEPENDS, reason, MERRILL)


def _factored(algebra: Algebra, rank: int, dimension: int) -> Prediction:
    """Return the verdict for dense matrices that share `rank` factors, on a space that all inputs can act on."""
    enough = dimension * (algebra.num_inputs if algebra.tokens_per_input == 1 else algebra.num_symbols)
    if rank >= enough:
        reason = f"{enough} factors are enough: {dimension} for the matrix of each symbol"
        return Prediction(Verdict.CAN, reason, MERRILL, 1)
    reason = f"{enough} factors would be enough, {dimension} for each symbol; whether fewer are, is not computed"
    return Prediction(Verdict.DEPENDS, reason, MERRILL)


def _fading(algebra: Algebra) -> Prediction:
    """Return the verdict for stable linear layers whose eigenvalues do not depend on the input, any number of them.

    With every |λ| at most r < 1, what came k inputs ago counts for at most r^k in a layer's state. From some k on this
    is below the precision, whatever the length. So a stack of layers is a function of the last inputs, a fixed number
    of them, which is what definite automata compute.
    """
    citation = f"{BOYD}; {PERLES}"
    if algebra.is_definite:
        reason = "the last few inputs alone decide the state, and a memory that fades holds them"
        return Prediction(Verdict.CAN, reason, citation, 1)
    reason = "all but the last inputs fade below any finite precision, and here earlier ones decide as well"
    return Prediction(Verdict.CANNOT, reason, citation)


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
