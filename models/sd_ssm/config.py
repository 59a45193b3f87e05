"""Settings of the SD-SSM."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import ModelConfig, Shape, Vocabulary
from orch.models.kernel import PLAIN
from orch.models.look import Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ModelConfig):
    name = "sd_ssm"
    revision = 1
    packs_across_cells = True
    about = "selective dense state space: a convex combination of transition matrices"
    title = "SD-SSM"
    family = "Bilinear models"
    looks = {"": Look("#7570B3", "H")}
    packs = True
    launches = {PLAIN: Launches(118, per_position=6, per_token=3)}
    holds_positions = False

    matrices: int = setting(6, "transition matrices of the dictionary")
    norm_order: float = setting(1.2, "p of the Lp norm that columns of a transition are divided by")

    @property
    def summary(self) -> str:
        return f"{self.matrices} matrices"

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.DENSE)

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H, V = self.width, vocabulary.size
        return {
            "embedding": (V, H),
            "selection": (self.matrices, H),
            "selection_bias": (self.matrices,),
            "dictionary": (self.matrices, H, H),
            "input": (H, H),
            "norm.weight": (H,),
            "norm.bias": (H,),
            "head.weight": (V, H),
            "head.bias": (V,),
        }

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        transitions = 2 * vocabulary.readable * (self.matrices + 2) * self.width**2
        return transitions + 2 * num_samples * (num_tokens * self.width**2 + self.width * vocabulary.size)

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        num_states = num_positions if training else num_samples
        transitions = num_samples + (12 if training else 6) * (vocabulary.readable + 1)
        return 6 * num_states * self.width + transitions * self.width**2 + self._index_memory(vocabulary, num_positions)

    def problems(self) -> list[str]:
        found = ModelConfig.problems(self)
        if self.matrices < 1:
            found.append(f"matrices {self.matrices} is no dictionary: use 1 or more")
        if not self.norm_order >= 1:
            found.append(f"norm_order {self.norm_order} gives no norm: use 1 or more, such as 1.2")
        return found
