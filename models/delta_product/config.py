"""Settings of DeltaProduct."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import Vocabulary
from orch.models.delta_net.config import COMPILED_LAUNCHES, DeltaConfig
from orch.models.kernel import COMPILED, PLAIN
from orch.models.look import DASHED, Look
from orch.models.step_costs import Launches


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DeltaConfig):
    name = "delta_product"
    revision = 1
    packs_across_cells = True
    compiled_from = 1
    places_kernel = COMPILED
    about = "delta rule: a product of several Householder reflections a token"
    title = "DeltaProduct"
    variant_titles = {
        "negative": "DeltaProduct [-1, 1]",
        "2 negative": "DeltaProduct of 2 [-1, 1]",
        "4 negative": "DeltaProduct of 4 [-1, 1]",
        "": "DeltaProduct of {}",
    }
    looks = {"negative": Look("#3B1259", "P"), "": Look("#9A86AE", "P", DASHED, filled=False)}
    arrays_kept, arrays_evaluated, arrays_moved = 20, 17, (364, 654)
    launches = {PLAIN: Launches(66, per_layer=224), COMPILED: COMPILED_LAUNCHES}

    householders: int = setting(2, "reflections of a token's transition")
    gated: bool = setting(False, "let the state decay and gate the output, as in Gated DeltaNet")

    @property
    def num_writes(self) -> int:
        return self.householders

    @property
    def is_gated(self) -> bool:
        return self.gated

    @property
    def summary(self) -> str:
        reflections = f"{self.householders} reflection{'s' * (self.householders != 1)}"
        return f"{reflections}, {DeltaConfig.summary.fget(self)}"  # type: ignore[attr-defined]

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        # Each further reflection has keys and values of its own.
        alike = round(num_samples * (1 + 0.4 * (self.householders - 1)))
        return DeltaConfig.working_memory(self, vocabulary, alike, num_tokens, training)

    def problems(self) -> list[str]:
        found = DeltaConfig.problems(self)
        if self.householders < 1:
            found.append(f"householders {self.householders} is no model: use 1 or more")
        return found
