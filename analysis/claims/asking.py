"""Asking the claims, all of them or some, of the paper's own numbers or of a store."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.analysis.claims import additive_terms, frozen_network, hierarchy, other_models
from orch.analysis.claims.claim import Claim
from orch.analysis.claims.evidence import DEMO, SCALE_NAMES, published_evidence, store_evidence
from orch.analysis.claims.verdict import Judgement, Verdict, judge
from orch.core.errors import OrchError, UnknownName
from orch.store.bundled import no_results
from orch.sweeps.scales import SCALES

if TYPE_CHECKING:
    from orch.store import Store

CLAIMS: tuple[Claim, ...] = (
    *hierarchy.CLAIMS,
    *additive_terms.CLAIMS,
    *frozen_network.CLAIMS,
    *other_models.CLAIMS,
)


@dataclass(frozen=True, slots=True)
class ClaimsAtScale:
    scale: str
    judgements: tuple[Judgement, ...]

    def having(self, verdict: Verdict) -> list[Judgement]:
        return [each for each in self.judgements if each.verdict is verdict]

    @property
    def with_results(self) -> list[Judgement]:
        return [each for each in self.judgements if each.has_results]

    @property
    def without_results(self) -> str:
        """The claims that nothing can be said of yet, in a sentence; empty if there are none."""
        claims = [each.claim for each in self.judgements if not each.has_results]
        sweeps = sorted({sweep for claim in claims for sweep in claim.sweeps})
        names = ", ".join(claim.id for claim in claims)
        return f"No results yet (they need {', '.join(sweeps)}): {names}." if claims else ""

    @property
    def summary(self) -> str:
        counts = Counter(each.verdict for each in self.judgements)
        return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)


def ask_published(claims: Sequence[Claim] = CLAIMS) -> list[Judgement]:
    evidence = published_evidence()
    return [judge(claim, evidence) for claim in claims]


def ask_store(store: "Store", scale: str | None = None, claims: Sequence[Claim] = CLAIMS) -> list[ClaimsAtScale]:
    """At one scale, or at each that has results; a scale that only proves that the machinery runs has to be named."""
    if scale is not None and scale not in SCALE_NAMES:
        raise UnknownName("scale", scale, SCALE_NAMES)
    if not store.exists():
        raise no_results(store.location)
    telling = [name for name in SCALE_NAMES if name == DEMO or not SCALES[name].sparse]
    sweeps = {sweep for claim in claims for sweep in claim.sweeps}
    found = []
    for name in telling if scale is None else [scale]:
        evidence = store_evidence(store, name, sweeps)
        if scale is not None or evidence.has_results:
            found.append(ClaimsAtScale(name, tuple(judge(claim, evidence) for claim in claims)))
    if not found:
        raise OrchError(
            f"{store.location} has no results that the claims ask for, at any of the scales {', '.join(telling)}:"
            " run orch sweep demo, or name a scale with --scale"
        )
    return found
