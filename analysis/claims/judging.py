"""All claims of the paper and of the field, and their judgement by the results of a board or of a store."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.analysis.board import Board
from orch.analysis.claims import additive_terms, field, frozen_network, hierarchy, other_models
from orch.analysis.claims.claim import Claim
from orch.analysis.claims.evidence import ATLAS, DEMO, Evidence, board_evidence
from orch.analysis.claims.judgement import Judgement, judge
from orch.analysis.claims.verdict import Verdict
from orch.analysis.statistics import CONFIDENCE, HALF, Share
from orch.core.errors import OrchError, UnknownName
from orch.sweeps.experiments import atlas, demo
from orch.sweeps.scales import SCALES, Scale

if TYPE_CHECKING:
    from orch.store import Store

UNDECIDED = "undecided"
"""The name of a verdict that the seeds leave open."""
CLAIMS: tuple[Claim, ...] = (
    *hierarchy.CLAIMS,
    *additive_terms.CLAIMS,
    *frozen_network.CLAIMS,
    *other_models.CLAIMS,
)
"""The claims of the paper."""
FIELD_CLAIMS: tuple[Claim, ...] = field.CLAIMS
"""The claims of other publications, which only the atlas is asked."""
JUDGED_SCALES: dict[str, Scale] = SCALES | {DEMO: demo.SMALL, ATLAS: atlas.SMALL}
"""Scales at which claims are judged: that of the demo, whose cells answer for the main sweep, and that of the atlas."""


@dataclass(frozen=True, slots=True)
class ClaimsAtScale:
    """The judgements of several claims by the results at one scale."""

    scale: str
    judgements: tuple[Judgement, ...]

    def having(self, verdict: Verdict) -> list[Judgement]:
        """Return the judgements with this verdict."""
        return [each for each in self.judgements if each.verdict is verdict]

    @property
    def with_results(self) -> list[Judgement]:
        """Judgements of claims that have at least one result."""
        return [each for each in self.judgements if each.has_results]

    @property
    def without_results(self) -> str:
        """A sentence that lists the claims without any results; empty if there are none."""
        claims = [each.claim for each in self.judgements if not each.has_results]
        sweeps = sorted({sweep for claim in claims for sweep in claim.sweeps})
        names = ", ".join(claim.id for claim in claims)
        return f"No results yet (they need {', '.join(sweeps)}): {names}." if claims else ""

    @property
    def title(self) -> str:
        """The heading of these judgements."""
        return "Claims of the field, by the atlas" if self.scale == ATLAS else f"Claims at {self.scale} scale"

    @property
    def summary(self) -> str:
        """The number of claims with each verdict by the paper's reading, in words."""
        counts = Counter(each.verdict for each in self.judgements)
        return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)

    @property
    def confidence(self) -> float:
        """The confidence at which the claims are sure."""
        return next((each.sureness.confidence for each in self.judgements), CONFIDENCE)

    @property
    def caution(self) -> str:
        """A sentence that says so if the planned seeds of the atlas cannot make any claim sure; otherwise empty."""
        num_seeds = len(atlas.SMALL.seeds)
        share = Share(num_seeds, num_seeds, self.confidence)
        is_sure = any(each.sureness.verdict is not Verdict.NOT_ENOUGH for each in self.judgements)
        if self.scale != ATLAS or share.low > HALF or is_sure:
            return ""
        return (
            f"The {num_seeds} seeds of the atlas are too few to be {self.confidence:.0%} sure of any claim (the"
            f" interval of {num_seeds} of {num_seeds} begins at {share.low:.2f}): orch claims --scale atlas --plan"
            " lists seeds to add."
        )

    @property
    def sure_summary(self) -> str:
        """The number of claims that most seeds support, contradict or leave undecided, in words."""
        counts = Counter(each.sureness.verdict for each in self.judgements)
        names = {verdict: str(verdict) for verdict in Verdict} | {Verdict.NOT_ENOUGH: UNDECIDED}
        return ", ".join(f"{counts[verdict]} {name}" for verdict, name in names.items())


def claims_at(scale: str) -> tuple[Claim, ...]:
    """Return the claims that are judged at a scale: those of the field by the atlas, those of the paper elsewhere."""
    return FIELD_CLAIMS if scale == ATLAS else CLAIMS


def judge_board(board: Board, claims: Sequence[Claim] | None = None, confidence: float = CONFIDENCE) -> ClaimsAtScale:
    """Judge claims, by default all of its scale, by the results at the board's scale, even if there are none."""
    asked = claims_at(board.scale.name) if claims is None else claims
    return _judge_all(board.scale.name, asked, board_evidence(board, _sweeps(asked)), confidence)


def judge_store(
    store: "Store", scale: str | None = None, claims: Sequence[Claim] | None = None, confidence: float = CONFIDENCE
) -> list[ClaimsAtScale]:
    """Judge claims, by default all of a scale, by a store's results at one scale, or at each scale that has results.

    A sparse scale only checks that everything runs, so its results are judged only if it is named.
    """
    if scale is not None and scale not in JUDGED_SCALES:
        raise UnknownName("scale", scale, JUDGED_SCALES)
    store.check_exists()
    if scale is not None:
        return [judge_board(Board.read(store, JUDGED_SCALES[scale]), claims, confidence)]
    board = Board.read(store, demo.SMALL)
    asked = {
        each.name: claims_at(each.name) if claims is None else claims
        for each in JUDGED_SCALES.values()
        if not each.sparse
    }
    evidence = {name: board_evidence(board.at(JUDGED_SCALES[name]), _sweeps(these)) for name, these in asked.items()}
    found = [_judge_all(name, asked[name], each, confidence) for name, each in evidence.items() if each.has_results]
    if not found:
        raise OrchError(
            f"{store.location} has no results that the claims ask for, at any of the scales {', '.join(evidence)}:"
            " run orch sweep demo, or name a scale with --scale"
        )
    return found


def _judge_all(scale: str, claims: Sequence[Claim], evidence: Evidence, confidence: float) -> ClaimsAtScale:
    return ClaimsAtScale(scale, tuple(judge(claim, evidence, confidence) for claim in claims))


def _sweeps(claims: Sequence[Claim]) -> set[str]:
    return {sweep for claim in claims for sweep in claim.sweeps}
