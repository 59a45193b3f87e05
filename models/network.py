"""Base classes of networks. A network is K trials of one model, stacked side by side."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn

from orch.core.errors import InvalidSettings
from orch.models.config import BilinearFamilyConfig, ModelConfig, Vocabulary
from orch.models.recurrence import Normalisation
from orch.models.token_table import Scratch, token_table

M = TypeVar("M", bound=nn.Module)
State = dict[str, Tensor]
"""Parameters of one trial by name, without the trial axis."""


class Network(nn.Module):
    """Maps tokens (K, B, T) to logits (K, B, V) at each sample's [EOI]. The first axis of parameters is the trial.

    A subclass defines `fresh` and `forward`.
    """

    replayable: ClassVar[bool] = True
    """False if a training step may depend on more than the contents of tensors, such as a number that Python counts or
    draws. Then a GPU runs it one operation at a time: see `orch.training.capture`."""

    def __init__(self, config: Any, vocabulary: Vocabulary, members: Sequence[Mapping[str, Tensor]]):
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.names = list(members[0])
        self.scratch: Scratch | None = None
        _check_shapes(config, vocabulary, members[0])
        for name in self.names:
            stacked = torch.stack([member[name] for member in members])
            self.register_parameter(_attribute(name), nn.Parameter(stacked, requires_grad=config.is_trained(name)))

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        """Draw one trial's initial parameters, on the CPU so that they do not depend on the device."""
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        """Return the logits at the positions `end_KB`."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Tensor:
        """Return the stacked parameter of this name."""
        return cast(Tensor, self._parameters[_attribute(name)])

    def reuse_gradient_memory(self) -> None:
        """Use the same memory for the gradients of every step, which are then valid until the next backward pass."""
        self.scratch = {}

    @property
    def num_trials(self) -> int:
        return len(self[self.names[0]])

    def member(self, trial: int) -> State:
        """Return one trial's parameters, as views."""
        return {name: self[name].detach()[trial] for name in self.names}

    def head(self, h_KBH: Tensor) -> Tensor:
        """Apply the linear head to states."""
        return torch.baddbmm(self["head.bias"][:, None], h_KBH, self["head.weight"].transpose(1, 2))


def _check_shapes(config: ModelConfig, vocabulary: Vocabulary, member: Mapping[str, Tensor]) -> None:
    """Raise an error unless the parameters have the shapes that the settings declare, on which estimates depend."""
    declared = {name: tuple(shape) for name, shape in config.shapes(vocabulary).items()}
    found = {name: tuple(tensor.shape) for name, tensor in member.items()}
    wrong = [name for name in declared | found if declared.get(name) != found.get(name)]
    if wrong:
        facts = "; ".join(f"{name} is {found.get(name)}, not {declared.get(name)}" for name in wrong)
        raise InvalidSettings([f"the network of {config.name} has other parameters than its shapes() says: {facts}"])


def _attribute(name: str) -> str:
    return name.replace(".", "/")


def build(config: ModelConfig, vocabulary: Vocabulary, generators: Sequence[torch.Generator]) -> Network:
    """Build an initialised network of one trial per generator. Each trial draws what it would draw alone."""
    kind = config.network()
    return kind(config, vocabulary, [kind.fresh(config, vocabulary, generator) for generator in generators])


def uniform(shape: Sequence[int], bound: float, generator: torch.Generator) -> Tensor:
    """Draw numbers within plus or minus `bound`."""
    return torch.empty(*shape).uniform_(-bound, bound, generator=generator)


def normal(shape: Sequence[int], deviation: float, generator: torch.Generator) -> Tensor:
    """Draw normal numbers with mean 0."""
    return torch.empty(*shape).normal_(0, deviation, generator=generator)


def draw_like_torch(make: Callable[[], M], generator: torch.Generator) -> M:
    """Make a module whose parameters torch draws from its global generator, seeded like `generator` for this call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        return make()


class BilinearFamily(Network):
    """Network with an embedding, a learned h_0, a bilinear recurrence (the subclass's `scan`) and a linear head."""

    config: BilinearFamilyConfig

    @classmethod
    def fresh(cls, config: BilinearFamilyConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        def draw(name: str, shape: Sequence[int]) -> Tensor:
            if name == "embedding":
                return normal(shape, config.embedding_scale, generator)
            return uniform(
                shape, config.initial_state_scale if name == "initial_state" else config.init_scale, generator
            )

        return {name: draw(name, shape) for name, shape in config.shapes(vocabulary).items()}

    def scan(
        self, x_KRD: Tensor, tokens_KBT: Tensor, normalisation: Normalisation, additive_KRH: Tensor | None
    ) -> Tensor:
        """Return the final states (K, B, H), given the embedding of every readable token."""
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        config = self.config
        kind, _, final = (config.train_normalisation if self.training else config.eval_normalisation).partition("-")
        normalisation = Normalisation(kind, config.state_block)
        each_step = Normalisation("none", config.state_block) if final else normalisation
        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        h_KBH = self.scan(x_KRD, tokens_KBT, each_step, self._additive(x_KRD))
        return self.head(normalisation(h_KBH) if final else h_KBH)

    def _additive(self, x_KRD: Tensor) -> Tensor | None:
        additive = None
        if "input" in self.config.additive:
            additive = torch.bmm(x_KRD, self["additive.input"].transpose(1, 2))
        if "constant" in self.config.additive:
            constant = self["additive.constant"][:, None]
            additive = constant.expand_as(x_KRD) if additive is None else additive + constant
        return additive


class TokenRNN(Network):
    """Network with the parameters and initialisation of torch.nn's recurrent layers. A subclass defines `forward`."""

    @classmethod
    def fresh(cls, config: ModelConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        bound = 1 / math.sqrt(config.width)
        return {
            name: normal(shape, 1.0, generator) if name == "embedding" else uniform(shape, bound, generator)
            for name, shape in config.shapes(vocabulary).items()
        }

    def input_table(self) -> Tensor:
        """Compute the input's part of every gate, once per token: (K, R, G)."""
        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        bias_KG = self["recurrence.bias_ih"] + self["recurrence.bias_hh"]
        return token_table(self["recurrence.weight_ih"], x_KRD, self.scratch) + bias_KG[:, None]


class PerTrial(Network):
    """Network around an ordinary module, which maps tokens (B, T) and ends (B) to logits (B, V). Trials take turns.

    A stack of such trials is no faster than its trials alone; it gives all models the same interface.
    """

    replayable = False  # any module may be wrapped, with any Python code in it

    def __init__(self, config: Any, vocabulary: Vocabulary, members: Sequence[Mapping[str, Tensor]]):
        super().__init__(config, vocabulary, members)
        with torch.device("meta"):
            skeleton = self.skeleton(config, vocabulary)
        self.__dict__["_skeleton"] = skeleton  # hidden from nn.Module: its parameters are placeholders
        skeleton.train(self.training)

    @classmethod
    def skeleton(cls, config: Any, vocabulary: Vocabulary) -> nn.Module:
        """Make the module of one trial, with torch.nn's usual initialisation."""
        raise NotImplementedError

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        module = draw_like_torch(lambda: cls.skeleton(config, vocabulary), generator)
        return {name: parameter.detach() for name, parameter in module.named_parameters()}

    def train(self, mode: bool = True) -> "PerTrial":
        if "_skeleton" in self.__dict__:
            self.__dict__["_skeleton"].train(mode)
        return super().train(mode)

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        # Padding has no embedding. Any token will do, because a causal model cannot see what follows [EOI].
        readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
        # `unbind` stacks the gradients of all trials once; indexing would fill a gradient of the stack's size for each.
        members = zip(*(self[name].unbind() for name in self.names), strict=True)
        logits = []
        for parameters, tokens_BT, end_B in zip(members, readable_KBT, end_KB, strict=True):
            named = dict(zip(self.names, parameters, strict=True))
            logits.append(torch.func.functional_call(self.__dict__["_skeleton"], named, (tokens_BT, end_B)))
        return torch.stack(logits)
