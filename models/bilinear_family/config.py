"""Settings and facts that the models of the bilinear family share. No torch."""

import math
from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import ModelConfig, Shape, Vocabulary
from orch.models.kernel import PLAIN, TRITON

ELEMENTWISE = 4
"""Largest block that plain kernels multiply entry by entry."""
ADDITIVE = ("none", "constant", "input", "input+constant")
NORMALISATIONS = ("none", "unit", "rms", "block", "unit-final", "rms-final", "block-final")


@dataclass(frozen=True, kw_only=True, slots=True)
class BilinearFamilyConfig(ModelConfig):
    """h_t = N(A(x_t) h_{t-1} + c(x_t)), A linear in the embedding x, h_0 learned; the head reads h at [EOI]."""

    packs = True
    holds_positions = False
    family = "Bilinear models"

    additive: str = setting("none", "what the recurrence adds: none, constant, input or input+constant")
    frozen: bool = setting(False, "train only the head")
    train_normalisation: str = setting(
        "rms", "state normalisation in training: none, or unit, rms or block at every step, or with -final at the last"
    )
    eval_normalisation: str = setting("rms", "state normalisation in evaluation, with the same names")
    init_scale: float = setting(0.01, "the recurrence and the head start uniform within plus or minus this")
    embedding_scale: float = setting(0.3, "standard deviation of the initial embeddings")
    initial_state_scale: float = setting(0.01, "h_0 starts uniform within plus or minus this")

    @property
    def state_block(self) -> int:
        """Size of the blocks that the `block` normalisation treats one by one."""
        return self.width

    @property
    def initial_growth(self) -> float:
        """Factor by which a token multiplies the norm of a state that is not normalised, before training.

        By arithmetic: a row of a transition has `state_block` entries, each a sum of `width` products of a weight that
        is uniform within `init_scale` and an embedding's component. Additive terms are left out.
        """
        return self.init_scale / math.sqrt(3) * self.embedding_scale * math.sqrt(self.width * self.state_block)

    def recurrence_shapes(self) -> dict[str, Shape]:
        """Shape of every parameter of the recurrence, by name."""
        raise NotImplementedError

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        """Number of operations of the recurrence: one transition for each readable token, applied at every position."""
        raise NotImplementedError

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H = self.width
        shapes = {"embedding": (vocabulary.size, H), "initial_state": (H,)}
        shapes |= {f"recurrence.{name}": shape for name, shape in self.recurrence_shapes().items()}
        if "input" in self.additive:
            shapes["additive.input"] = (H, H)
        if "constant" in self.additive:
            shapes["additive.constant"] = (H,)
        return shapes | {"head.weight": (vocabulary.size, H), "head.bias": (vocabulary.size,)}

    def transition_size(self, readable: int, num_positions: int) -> int:
        """Numbers of one token's transition, where a GPU looks it up for every sample."""
        return self.state_block * self.width

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        num_states = num_positions if training else num_samples
        tables = 6 if training else 3
        transitions = num_samples + tables * (vocabulary.readable + 1)
        return (
            6 * num_states * self.width
            + transitions * self.transition_size(vocabulary.readable, num_positions)
            + self._index_memory(vocabulary, num_positions)
        )

    def gpu_kernel_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        # No sample has a copy of its transition. Training keeps the states before and after each division.
        num_positions = num_samples * num_tokens
        num_states, tables = (4 * num_positions, 3) if training else (6 * num_samples, 2)
        table = vocabulary.readable * self.transition_size(vocabulary.readable, num_positions)
        return num_states * self.width + tables * table + 16 * num_positions

    def is_trained(self, parameter: str) -> bool:
        return parameter.startswith("head.") or not self.frozen

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        head = 2 * num_samples * self.width * vocabulary.size
        return self.recurrence_flops(vocabulary.readable, num_samples * num_tokens) + head

    @property
    def passes(self) -> int:
        return 1 if self.frozen else 3

    def num_launches(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        found = ModelConfig.num_launches(self, vocabulary, num_samples, num_tokens, kernel)
        if kernel == TRITON:
            found += {"none": 0, "constant": 3, "input": 6, "input+constant": 8}.get(self.additive, 0)
            return 0.65 * found if self.frozen else found  # without a backward pass
        if kernel != PLAIN:
            return found
        kind, _, final = self.train_normalisation.partition("-")
        at_each = {"none": -7, "unit": -2}.get(kind, 0) if not final else -7
        added = {"none": 0, "constant": 10, "input": 14, "input+constant": 16}.get(self.additive, 0)
        if self.additive != "none":
            at_each += 2
        found += at_each * num_tokens + added + (19 if final else 0)
        return 0.42 * found if self.frozen else found

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        num_positions = num_samples * num_tokens
        transition = self.transition_size(vocabulary.readable, num_positions)
        training = training and not self.frozen
        if kernel != PLAIN:
            # Samples that read the same token share its transition.
            tables = vocabulary.readable * transition * num_tokens * (2 if training else 1)
            return num_positions * self.width * (10 if training else 3) + tables
        # Plain kernels look a transition up for each sample and position. For large blocks they sum gradients by token.
        if not training:
            return num_positions * (5 * self.width + 2 * transition)
        if transition <= ELEMENTWISE * self.width:
            return num_positions * (15.5 * self.width + 10.5 * transition)
        sums = vocabulary.readable * (4.4 * num_positions * self.width + 31 * transition)
        return num_positions * (15.5 * self.width + 4.4 * transition) + sums

    def problems(self) -> list[str]:
        found = ModelConfig.problems(self)
        if self.additive not in ADDITIVE:
            found.append(f"additive {self.additive!r} is unknown: use one of {', '.join(ADDITIVE)}")
        for field in ("train_normalisation", "eval_normalisation"):
            value = getattr(self, field)
            if value not in NORMALISATIONS:
                found.append(f"{field} {value!r} is unknown: use one of {', '.join(NORMALISATIONS)}")
            elif value.startswith("block") and self.state_block == 1 and not self.frozen:
                found.append(
                    f"{field} {value!r} leaves blocks of size 1 only their sign: use unit or rms, or a frozen model"
                )
        for field in ("init_scale", "embedding_scale", "initial_state_scale"):
            if not getattr(self, field) > 0:
                found.append(f"{field} {getattr(self, field)} gives no signal to start from: use a positive number")
        return found
