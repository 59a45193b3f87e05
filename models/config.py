"""What every model's settings share, and what the bilinear family shares beyond that. No torch."""

import importlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from orch.core.settings import setting

if TYPE_CHECKING:
    from orch.models.network import Network

ADDITIVE = ("none", "constant", "input", "input+constant")
NORMALISATIONS = ("none", "unit", "rms", "block", "unit-final", "rms-final", "block-final")

Shape = tuple[int, ...]


class Vocabulary(NamedTuple):
    """How many tokens there are, and how many of them can be read (the first ones)."""

    size: int
    readable: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    width: int = setting(256, "width of the state and of the embeddings")

    name: ClassVar[str]
    about: ClassVar[str]
    """The model in a line, for listings."""
    revision: ClassVar[int]
    """Raise it whenever the same settings and seed would train to other numbers: it is part of a trial's id."""
    packs: ClassVar[bool] = False
    """Whether stacked trials share every operation. If not they take turns, and a pack gains nothing."""
    slow: ClassVar[bool] = False
    """Whether it takes many times as long as others of its width: small scales then train fewer trials of it."""

    @property
    def summary(self) -> str:
        """What sets this variant apart within its model, for listings."""
        return ""

    @property
    def max_tokens(self) -> int | None:
        """The longest sequence the model can read, [BOS] and [EOI] included."""
        return None

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        """Every parameter of one trial, by name."""
        raise NotImplementedError

    def network(self) -> "type[Network]":
        """What computes it. Imports torch, so it is asked for only where something is trained or evaluated."""
        package = type(self).__module__.rpartition(".")[0]
        return importlib.import_module(f"{package}.network").Network

    def is_trained(self, parameter: str) -> bool:
        return True

    def num_parameters(self, vocabulary: Vocabulary) -> int:
        return sum(math.prod(shape) for shape in self.shapes(vocabulary).values())

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        """Multiplications and additions to read `num_samples` sequences of `num_tokens`; a training step takes about
        three times that, and Adam's pass over the parameters.

        For estimates only. If a model does not say, every parameter is taken to serve every token once."""
        return 2 * num_samples * num_tokens * self.num_parameters(vocabulary)

    def problems(self) -> list[str]:
        """Everything wrong with these settings, each as a sentence that names the remedy."""
        if self.width < 1:
            return [f"width {self.width} is not a width: use 1 or more"]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class BilinearFamilyConfig(ModelConfig):
    """h_t = N(A(x_t) h_{t-1} + c(x_t)), A linear in the embedding x, h_0 learned; the head reads h at [EOI]."""

    packs = True

    additive: str = setting("none", "what the recurrence adds: none, constant, input or input+constant")
    frozen: bool = setting(False, "train only the head")
    train_normalisation: str = setting(
        "rms", "state normalisation in training: none, or unit, rms or block at every step, or with -final at the last"
    )
    eval_normalisation: str = setting("rms", "state normalisation in evaluation, named likewise")
    init_scale: float = setting(0.01, "the recurrence and the head start uniform within plus or minus this")
    embedding_scale: float = setting(0.3, "standard deviation of the initial embeddings")
    initial_state_scale: float = setting(0.01, "h_0 starts uniform within plus or minus this")

    @property
    def state_block(self) -> int:
        """The size of the blocks that `block` normalises one by one."""
        return self.width

    def recurrence_shapes(self) -> dict[str, Shape]:
        raise NotImplementedError

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
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

    def is_trained(self, parameter: str) -> bool:
        return parameter.startswith("head.") or not self.frozen

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        head = 2 * num_samples * self.width * vocabulary.size
        return self.recurrence_flops(vocabulary.readable, num_samples * num_tokens) + head

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


def rnn_shapes(width: int, num_gates: int, vocabulary: Vocabulary) -> dict[str, Shape]:
    """torch.nn's recurrent layout (two biases, no learned initial state) between an embedding and a head."""
    gates = num_gates * width
    return {
        "embedding": (vocabulary.size, width),
        "recurrence.weight_ih": (gates, width),
        "recurrence.weight_hh": (gates, width),
        "recurrence.bias_ih": (gates,),
        "recurrence.bias_hh": (gates,),
        "head.weight": (vocabulary.size, width),
        "head.bias": (vocabulary.size,),
    }


def rnn_flops(width: int, num_gates: int, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
    per_token_table = 2 * vocabulary.readable * num_gates * width * width
    recurrence = 2 * num_samples * num_tokens * num_gates * width * width
    return per_token_table + recurrence + 2 * num_samples * width * vocabulary.size
