"""Settings of Gated DeltaNet."""

from dataclasses import dataclass

from orch.models.delta_net.config import COMPILED_LAUNCHES, DeltaConfig
from orch.models.kernel import COMPILED, PLAIN
from orch.models.look import DASHED, Look
from orch.models.step_costs import Launches


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DeltaConfig):
    name = "gated_delta_net"
    revision = 1
    packs_across_cells = True
    compiled_from = 1
    places_kernel = COMPILED
    about = "delta rule with a state that decays"
    title = "Gated DeltaNet"
    variant_titles = {"negative": "Gated DeltaNet [-1, 1]"}
    looks = {"negative": Look("#C2519D", "s"), "": Look("#DDA0CB", "s", DASHED, filled=False)}
    arrays_kept, arrays_evaluated, arrays_moved = 20, 17, (364, 654)
    launches = {PLAIN: Launches(66, per_layer=320), COMPILED: COMPILED_LAUNCHES}

    @property
    def is_gated(self) -> bool:
        return True
