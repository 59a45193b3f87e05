"""Settings of Gated DeltaNet."""

from dataclasses import dataclass

from orch.models.delta_net.config import DeltaConfig
from orch.models.look import DASHED, Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DeltaConfig):
    name = "gated_delta_net"
    revision = 1
    packs_across_cells = True
    compiled_from = 1
    about = "delta rule with a state that decays"
    title = "Gated DeltaNet"
    variant_titles = {"negative": "Gated DeltaNet [-1, 1]"}
    looks = {"negative": Look("#C2519D", "s"), "": Look("#DDA0CB", "s", DASHED, filled=False)}

    @property
    def is_gated(self) -> bool:
        return True
