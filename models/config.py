"""Base classes of the models' settings: of every model, and of those with layers. No torch.

A model declares here, on its `Config`, everything that the rest of the project knows about it.
"""

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from orch.core.errors import InvalidSettings
from orch.core.settings import full_summary, setting
from orch.models.kernel import COMPILED, PLAIN, TRITON, choose_kernel
from orch.models.look import Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Transitions

if TYPE_CHECKING:
    from orch.models.network import Network

MOST_TOKENS_IN_ONE_PASS = 16
"""Readable tokens up to which compiled kernels compute the gradients of a token table in one pass over its weight."""

Shape = tuple[int, ...]


class Vocabulary(NamedTuple):
    """Number of tokens of a task, and how many of them (the first ones) can be read."""

    size: int
    readable: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Settings of one model. Only `name`, `about` and `revision` are required."""

    width: int = setting(256, "width of the state and of the embeddings")

    name: ClassVar[str]
    about: ClassVar[str]
    """One line about the model, for listings."""
    revision: ClassVar[int]
    """Raise it whenever the same settings and seed would train to other numbers: it is part of a trial's id."""
    packs: ClassVar[bool] = False
    """True if stacked trials share every operation. If not, they take turns and a pack saves no time."""
    packs_across_cells: ClassVar[bool] = False
    """True if trials on different tasks can be stacked too: then the network leaves everything that depends on the
    vocabulary to `Network.vocabularies`."""
    holds_positions: ClassVar[bool] = True
    """True if it keeps every position of a sequence in memory, and not only a state: it is evaluated on fewer samples
    at once."""
    compiled_from: ClassVar[int | None] = None
    """Width from which the network's compiled kernels are used on a CPU; None if it has none. In packs of narrow trials
    the plain kernel may be faster, because one operation of it serves all of them."""
    compiled_kernel: ClassVar[str] = COMPILED
    """Name of its compiled kernels. Faster ones that round differently need another name: a trial keeps its kernel."""
    places_kernel: ClassVar[str] = PLAIN
    """Name of the compiled kernels that also answer within a sequence, where labels stand there; plain if none do."""
    gpu_kernels: ClassVar[bool] = False
    """True if the network has kernels for GPUs, in `models/gpu_kernels/`."""
    token_tables: ClassVar[tuple[str, ...]] = ()
    """Weights that are only multiplied with embeddings, once per token: kernels for GPUs write no gradients of them."""
    slow: ClassVar[bool] = False
    """True if it takes many times as long as other models of its width: small scales train fewer trials of it."""
    title: ClassVar[str] = ""
    """Name in tables and figures. If empty, it is `name` with spaces for underscores."""
    variant_titles: ClassVar[Mapping[str, str]] = {}
    """Titles of variants by their name in the published tables; "" is for all others, with {} for the variant."""
    family: ClassVar[str] = "Other models"
    """Models of one family share a row of panels in figures."""
    looks: ClassVar[Mapping[str, Look]] = {}
    """Look in figures by `table_variant`; "" is for all other variants. A model without one is given a spare look."""
    small_settings: ClassVar[Mapping[str, Any]] = {}
    """Settings other than the width that make a trial small enough for tests and `orch doctor`."""
    own_learning_rates: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """Learning rates by name of scale, in place of the scale's default."""
    launches: ClassVar[Mapping[str, Launches]] = {PLAIN: Launches(40, per_position=13)}
    """What a training step starts, by name of the kernel."""

    @classmethod
    def title_of(cls, variant: str = "") -> str:
        """Return the title of a variant, given its name in the published tables."""
        title = cls.title or cls.name.replace("_", " ").capitalize()
        if not variant:
            return title
        template = cls.variant_titles.get(variant, cls.variant_titles.get(""))
        return template.format(variant) if template else f"{title} ({variant})"

    @classmethod
    def look_of(cls, variant: str = "") -> Look | None:
        """Return the look of a variant in figures, given its name in the published tables; None if it has none."""
        return cls.looks.get(variant) or cls.looks.get("")

    @property
    def table_variant(self) -> str:
        """Name of this variant in the published tables, such as "8" for blocks of 8."""
        return ""

    @property
    def summary(self) -> str:
        """Description of what usually distinguishes variants of this model; `full_summary` adds all else."""
        return ""

    @property
    def full_summary(self) -> str:
        """Description of this variant for tables and labels: no two settings share one, except for widths.

        It is the summary, and the settings that it does not depend on and that differ from their defaults.
        """
        return full_summary(self, "width")

    @property
    def transitions(self) -> Transitions | None:
        """What an input can do to the state, from which theory predicts what it can track; None if nothing is known."""
        return None

    def kernel_name(self, device: str, several_places: bool = False) -> str:
        """Return the implementation that trains new trials on `device`, to be recorded with their results.

        With `several_places`, labels also stand within a sequence, where some kernels have no answer.
        """
        if device.startswith("cpu") and not self.has_compiled:
            return PLAIN
        chosen = choose_kernel(device, self.compiled, self.has_gpu_kernels)
        if chosen == COMPILED:
            return self.places_kernel if several_places else self.compiled_kernel
        return self.plain_kernel(device) if chosen == PLAIN or several_places else chosen

    def plain_kernel(self, device: str) -> str:
        """Return the name of what runs on `device` without kernels of our own: operations of PyTorch, or a package."""
        return PLAIN

    @property
    def has_compiled(self) -> bool:
        """Whether the network has compiled kernels. A model derived from one that has may have another network."""
        return vars(type(self)).get("compiled_from") is not None

    @property
    def crosses_cells(self) -> bool:
        """Whether its trials are stacked across tasks. A model derived from one that is may have another network."""
        return bool(vars(type(self)).get("packs_across_cells"))

    @property
    def has_gpu_kernels(self) -> bool:
        """Whether the network has kernels for GPUs. A model derived from one that has may have another network."""
        return bool(vars(type(self)).get("gpu_kernels", False))

    def uses_triton(self, device: str) -> bool:
        """Return whether new trials on `device` run kernels for GPUs, as far as one can tell without torch."""
        return self.has_gpu_kernels and choose_kernel(device, has_triton=True) == TRITON

    @property
    def compiled(self) -> bool:
        """Whether its new trials on a CPU use compiled kernels, unless the user or the machine decides otherwise."""
        return self.has_compiled and self.width >= (self.compiled_from or 0)

    @property
    def max_tokens(self) -> int | None:
        """Longest sequence that the model can read, [BOS] and [EOI] included; None if there is no limit."""
        return None

    def able_to_read(self, num_tokens: int) -> "ModelConfig":
        """Return this model, with a higher limit of tokens if it has one that is lower."""
        return self

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        """Shape of every parameter of one trial, by name. By default they are read off the network, with torch."""
        try:
            return self.network().shapes(self, vocabulary)
        except RecursionError:
            problem = f"model {self.name} has no shapes, which its network asks for: define shapes(self, vocabulary)"
            raise InvalidSettings([problem]) from None

    def network(self) -> "type[Network]":
        """Return the module's class. Call it only where something is trained or evaluated, because it imports torch."""
        package = type(self).__module__.rpartition(".")[0]
        return cast("type[Network]", importlib.import_module(f"{package}.network").Network)

    def is_trained(self, parameter: str) -> bool:
        """Return whether training changes the parameter of this name."""
        return True

    def num_parameters(self, vocabulary: Vocabulary) -> int:
        return sum(math.prod(shape) for shape in self.shapes(vocabulary).values())

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        """Number of multiplications and additions to read `num_samples` sequences of `num_tokens`, for estimates.

        A training step takes about three times as many, and Adam's pass over the parameters. By default every parameter
        is assumed to be used once for every token.
        """
        return 2 * num_samples * num_tokens * self.num_parameters(vocabulary)

    def reading_flops(self, vocabulary: Vocabulary) -> int:
        """Number of operations to answer at one more place of a sequence, where labels also stand within it."""
        return 2 * self.width * vocabulary.size

    def reading_entries(self, vocabulary: Vocabulary) -> int:
        """Numbers that a CPU writes to answer at one more place, for estimates: states, logits and the like."""
        return 8 * self.width + 6 * vocabulary.size

    def choices(self, vocabulary: Vocabulary, num_positions: int) -> tuple[bool, ...]:
        """Return what the network decides by size, for a batch of so many tokens, between ways that round differently.

        Trials that differ in this are not stacked on a CPU.
        """
        return (vocabulary.readable > MOST_TOKENS_IN_ONE_PASS,)

    def sequential_positions(self, num_tokens: int) -> int:
        """Number of positions that a model reads one after the other, for estimates.

        A recurrence goes through all its tokens. A model that reads them at once makes as many calls as at a few.
        """
        return num_tokens

    def launches_of(self, kernel: str, vocabulary: Vocabulary, num_positions: int) -> Launches:
        """What a training step on a batch of `num_positions` in all starts: by default, what `launches` says."""
        return self.launches.get(kernel.partition("-")[0], self.launches[PLAIN])  # without its version

    @property
    def passes(self) -> int:
        """Number of forward passes that take as long as the forward and backward pass of a training step."""
        return 3

    def num_launches(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        """Number of kernels that a training step starts: see `Launches`."""
        launches = self.launches_of(kernel, vocabulary, num_samples * num_tokens)
        num_layers = getattr(self, "layers", 0)
        return launches.count(self.sequential_positions(num_tokens), vocabulary.readable, num_layers)

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        """Numbers at all positions that a CPU writes in a training step: states, gates and the like, for estimates."""
        return num_samples * num_tokens * self.width

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        """Numbers at all positions that a GPU's kernels read and write, beside the passes over the parameters."""
        return num_samples * num_tokens * self.width * (40 if training else 10)

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        """Most numbers, beside the parameters, that a GPU holds while it reads so many sequences, for sizes of packs.

        In training this includes what the backward pass needs.
        """
        num_states = num_samples * num_tokens if training or self.holds_positions else num_samples
        return 16 * num_states * self.width + self._index_memory(vocabulary, num_samples * num_tokens)

    def gpu_kernel_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        """Return the same as `working_memory`, where kernels for GPUs run."""
        return self.working_memory(vocabulary, num_samples, num_tokens, training)

    def _index_memory(self, vocabulary: Vocabulary, num_positions: int) -> int:
        """Numbers that say which token is where: indices, which take two each, and sums by token."""
        return num_positions * (vocabulary.readable + 16)

    def problems(self) -> list[str]:
        """List everything wrong with these settings, each as a sentence that names the remedy."""
        if self.width < 1:
            return [f"width {self.width} is not a width: use 1 or more"]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class LayeredConfig(ModelConfig):
    """A stack of equal layers, slow to train. Variants in the published tables differ in the number of layers."""

    slow = True

    layers: int = setting(1, "number of layers")

    @property
    def table_variant(self) -> str:
        return str(self.layers)

    @property
    def summary(self) -> str:
        return f"{self.layers} layer{'s' * (self.layers != 1)}"

    def problems(self) -> list[str]:
        found = ModelConfig.problems(self)
        if self.layers < 1:
            found.append(f"layers {self.layers} is no model: use 1 or more")
        return found
