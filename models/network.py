"""Base classes of networks. A network is K trials of one model, stacked side by side."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from orch.core.errors import InvalidSettings
from orch.models.config import BilinearFamilyConfig, ModelConfig, Vocabulary
from orch.models.kernel import COMPILED, PLAIN
from orch.models.recurrence import Normalisation
from orch.models.token_table import Scratch, token_table

if TYPE_CHECKING:
    from orch.models.compiled.gates import GatedScan
    from orch.models.compiled.token_table import Gradient
    from orch.models.compiled.transitions import CompiledScan

State = dict[str, Tensor]
"""Parameters of one trial by name, without the trial axis."""


class Network(nn.Module):
    """Maps tokens (K, B, T) to logits (K, B, V) at each sample's [EOI]. The first axis of parameters is the trial.

    A subclass defines `fresh` and `forward`.
    """

    def __init__(self, config: Any, vocabulary: Vocabulary, members: Sequence[Mapping[str, Tensor]]):
        super().__init__()
        self.config = config
        self.vocabulary = vocabulary
        self.names = list(members[0])
        self.kernel = PLAIN
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

    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> "tuple[Tensor, dict[str, Gradient]]":
        """Return each trial's mean loss (K) and its gradient by parameter, from compiled kernels.

        Only a network whose settings say `compiled` has them. Autograd takes no part.
        """
        raise NotImplementedError

    @property
    def answers_compiled(self) -> bool:
        """Whether `forward` runs the compiled kernels: autograd cannot see through them."""
        return self.kernel == COMPILED and not torch.is_grad_enabled()

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

    def with_unread_rows(self, g_KRD: Tensor) -> Tensor:
        """Return the gradient of the embedding, which is zero for tokens that are never read."""
        return nn.functional.pad(g_KRD, (0, 0, 0, self.vocabulary.size - self.vocabulary.readable))

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
        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        if self.answers_compiled and self.answers_faster:
            return self.head(self._compiled_scan(x_KRD, tokens_KBT).forward(keep=False))
        normalisation, every_step = self._normalisation()
        each = normalisation if every_step else Normalisation("none", self.config.state_block)
        h_KBH = self.scan(x_KRD, tokens_KBT, each, self._additive(x_KRD))
        return self.head(h_KBH if every_step else normalisation(h_KBH))

    def _normalisation(self) -> tuple[Normalisation, bool]:
        """Return the normalisation, and whether it applies at every step or only at the last."""
        config = self.config
        kind, _, final = (config.train_normalisation if self.training else config.eval_normalisation).partition("-")
        return Normalisation(kind, config.state_block), not final

    @property
    def answers_faster(self) -> bool:
        """Whether the compiled scan is also the faster one without gradients. For large blocks torch's products are."""
        return False

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        """Return the compiled recurrence over a batch. `options` are h_0, the normalisation and the additive term."""
        raise NotImplementedError

    def _compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor) -> "CompiledScan":
        options = self["initial_state"], *self._normalisation(), self._additive(x_KRD)
        return self.compiled_scan(x_KRD, tokens_KBT, *options)

    @torch.no_grad()
    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> "tuple[Tensor, dict[str, Gradient]]":
        from orch.models.compiled.head import head_loss

        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        frozen = self.config.frozen
        scan = self._compiled_scan(x_KRD, tokens_KBT)
        h_KBH = scan.forward(keep=not frozen)
        loss_K, g_KBH, g_weight, g_bias = head_loss(self["head.weight"], self["head.bias"], h_KBH, target_KB)
        gradients: dict[str, Gradient] = {"head.weight": g_weight, "head.bias": g_bias}
        if frozen:
            return loss_K, gradients
        g_x, g_h0, g_additive, parameters = scan.backward(g_KBH)
        gradients |= parameters | {"initial_state": g_h0}
        if g_additive is not None:
            if "input" in self.config.additive:
                gradients["additive.input"] = torch.bmm(g_additive.transpose(1, 2), x_KRD)
                g_x = g_x + torch.bmm(g_additive, self["additive.input"])
            if "constant" in self.config.additive:
                gradients["additive.constant"] = g_additive.sum(1)
        return loss_K, gradients | {"embedding": self.with_unread_rows(g_x)}

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

    def compiled_scan(self, tokens_KBT: Tensor) -> "GatedScan":
        """Return the compiled recurrence over a batch."""
        from orch.models.compiled.gates import GatedScan

        return GatedScan(self.input_table(), self["recurrence.weight_hh"], tokens_KBT)

    @torch.no_grad()
    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> "tuple[Tensor, dict[str, Gradient]]":
        from orch.models.compiled.head import head_loss

        scan = self.compiled_scan(tokens_KBT)
        loss_K, g_KBH, g_weight, g_bias = head_loss(
            self["head.weight"], self["head.bias"], scan.forward(keep=True), target_KB
        )
        g_input_KRG, g_hidden = scan.backward(g_KBH)
        weight_ih, x_KRD = self["recurrence.weight_ih"], self["embedding"][:, : self.vocabulary.readable]
        g_bias_KG = g_input_KRG.sum(1)
        return loss_K, {
            "embedding": self.with_unread_rows(torch.bmm(g_input_KRG, weight_ih)),
            "recurrence.weight_ih": torch.bmm(g_input_KRG.transpose(1, 2), x_KRD),
            "recurrence.weight_hh": g_hidden,
            "recurrence.bias_ih": g_bias_KG,
            "recurrence.bias_hh": g_bias_KG,
            "head.weight": g_weight,
            "head.bias": g_bias,
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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            module = cls.skeleton(config, vocabulary)
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
