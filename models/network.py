"""A network is K trials of one model stacked side by side; what all models share, and the bilinear family's body."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from orch.core.errors import InvalidSettings
from orch.models.config import BilinearFamilyConfig, ModelConfig, Vocabulary
from orch.models.recurrence import Normalisation
from orch.models.token_table import Scratch, token_table

State = dict[str, Tensor]
"""One trial's parameters by name, without the trial axis."""


class Network(nn.Module):
    """Maps tokens (K, B, T) to logits (K, B, V) at each sample's [EOI]. Parameters carry the trial axis first.

    A subclass defines `fresh` (one trial's initial parameters) and `forward`.
    """

    config_type: ClassVar[type[ModelConfig]]

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
        """One trial's initial parameters, drawn on the CPU so that they do not depend on the device."""
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        raise NotImplementedError

    def __getitem__(self, name: str) -> Tensor:
        """The stacked parameter of that name."""
        return self._parameters[_attribute(name)]  # type: ignore[return-value]

    def reuse_gradient_memory(self) -> None:
        """For a training loop that is done with a step's gradients before the next: see `Scratch`."""
        self.scratch = {}

    @property
    def num_trials(self) -> int:
        return len(self[self.names[0]])

    def member(self, trial: int) -> State:
        """One trial's parameters, as views."""
        return {name: self[name].detach()[trial] for name in self.names}

    def head(self, h_KBH: Tensor) -> Tensor:
        return torch.baddbmm(self["head.bias"][:, None], h_KBH, self["head.weight"].transpose(1, 2))


def _check_shapes(config: ModelConfig, vocabulary: Vocabulary, member: Mapping[str, Tensor]) -> None:
    """Parameters are counted, and times estimated, by what the settings say without torch."""
    said = {name: tuple(shape) for name, shape in config.shapes(vocabulary).items()}
    found = {name: tuple(tensor.shape) for name, tensor in member.items()}
    wrong = [name for name in said | found if said.get(name) != found.get(name)]
    if wrong:
        facts = "; ".join(f"{name} is {found.get(name)}, not {said.get(name)}" for name in wrong)
        raise InvalidSettings([f"the network of {config.name} has other parameters than its shapes() says: {facts}"])


def _attribute(name: str) -> str:
    return name.replace(".", "/")


def network_type(config: ModelConfig) -> type[Network]:
    """The network of a model's settings."""
    return config.network()


def build(config: ModelConfig, vocabulary: Vocabulary, generators: Sequence[torch.Generator]) -> Network:
    """A freshly initialised network of one trial per generator: each draws what it would draw alone."""
    kind = network_type(config)
    return kind(config, vocabulary, [kind.fresh(config, vocabulary, generator) for generator in generators])


def uniform(shape: Sequence[int], bound: float, generator: torch.Generator) -> Tensor:
    return torch.empty(*shape).uniform_(-bound, bound, generator=generator)


def normal(shape: Sequence[int], deviation: float, generator: torch.Generator) -> Tensor:
    return torch.empty(*shape).normal_(0, deviation, generator=generator)


class BilinearFamily(Network):
    """Embedding, learned h_0, a bilinear recurrence (the subclass's `scan`), a linear head."""

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
        """Final states, given the embedding of every readable token."""
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
    """torch.nn's recurrent parameter layout and initialisation; a subclass scans it."""

    @classmethod
    def fresh(cls, config: ModelConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        bound = 1 / math.sqrt(config.width)
        return {
            name: normal(shape, 1.0, generator) if name == "embedding" else uniform(shape, bound, generator)
            for name, shape in config.shapes(vocabulary).items()
        }

    def input_table(self) -> Tensor:
        """The input's part of every gate, once per token: (K, R, G)."""
        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        bias_KG = self["recurrence.bias_ih"] + self["recurrence.bias_hh"]
        return token_table(self["recurrence.weight_ih"], x_KRD, self.scratch) + bias_KG[:, None]


class PerTrial(Network):
    """Any ordinary module as a network: `skeleton` maps tokens (B, T) and ends (B) to logits (B, V); trials take turns.

    Stacking such a model gains nothing in speed; it only lets the rest of the project treat all models alike.
    """

    def __init__(self, config: Any, vocabulary: Vocabulary, members: Sequence[Mapping[str, Tensor]]):
        super().__init__(config, vocabulary, members)
        with torch.device("meta"):
            skeleton = self.skeleton(config, vocabulary)
        self.__dict__["_skeleton"] = skeleton  # hidden from nn.Module: its parameters are placeholders
        skeleton.train(self.training)

    @classmethod
    def skeleton(cls, config: Any, vocabulary: Vocabulary) -> nn.Module:
        raise NotImplementedError

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            module = cls.skeleton(config, vocabulary)
        return {name: parameter.detach() for name, parameter in module.named_parameters()}

    def train(self, mode: bool = True) -> "PerTrial":
        if "_skeleton" in self.__dict__:
            self.__dict__["_skeleton"].train(mode)
        return super().train(mode)

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        # Padding has no embedding of its own; what follows [EOI] cannot reach it in a causal model.
        readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
        # Unbound, all trials' gradients are stacked once; indexed, each would fill a gradient of the stack's size.
        members = zip(*(self[name].unbind() for name in self.names), strict=True)
        logits = []
        for parameters, tokens_BT, end_B in zip(members, readable_KBT, end_KB, strict=True):
            named = dict(zip(self.names, parameters, strict=True))
            logits.append(torch.func.functional_call(self.__dict__["_skeleton"], named, (tokens_BT, end_B)))
        return torch.stack(logits)
