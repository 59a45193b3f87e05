"""Base classes of networks. A network is K trials of one model, stacked side by side."""

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn

from orch.core.errors import InvalidSettings
from orch.core.prints import prints_are_messages
from orch.models.config import ModelConfig, Vocabulary
from orch.models.kernel import PLAIN, TRITON, is_compiled
from orch.models.stacking import NUM_TRIED, Stacking, decide_stacking, stacked_call
from orch.models.token_table import Gradient, OuterProducts, Scratch, flat_table, token_table
from orch.models.vocabularies import Vocabularies, stack_padded
from orch.models.wrapped_module import State as State
from orch.models.wrapped_module import WrappedModule

M = TypeVar("M", bound=nn.Module)


class Network(nn.Module):
    """Maps tokens (K, B, T) to logits (K, B, V) at each sample's [EOI]. The first axis of parameters is the trial.

    Labels may also stand within a sequence. Then `end_KB` is (K, B, P), as in `orch.models.places`, and logits are
    (K, BP, V): one place of a sample after the other. A subclass defines `fresh` and `forward`.
    """

    replayable: ClassVar[bool] = True
    """False if a training step may depend on more than the contents of tensors, such as a number that Python counts or
    draws. Then a GPU runs it one operation at a time: see `orch.training.capture`."""

    def __init__(
        self, config: Any, vocabulary: Vocabulary | Sequence[Vocabulary], members: Sequence[Mapping[str, Tensor]]
    ):
        """Stack the parameters of trials, which all have the same `vocabulary`, or each its own."""
        super().__init__()
        self.config = config
        each = [vocabulary] * len(members) if isinstance(vocabulary, Vocabulary) else vocabulary
        self.vocabularies = Vocabularies(each)
        self.vocabulary = self.vocabularies.padded
        self.names = list(members[0])
        self.kernel = PLAIN
        self.precision = "float32"
        """What it trains in: see `orch.training.precision`."""
        self.scratch: Scratch | None = None
        self._tables: dict[str, tuple[Tensor, Tensor]] = {}
        self.noise_seed: Callable[[int], int] = lambda trial: 0
        """Seed of the random numbers, such as those of dropout, that a trial draws in the coming training step."""
        self.register_buffer("mask_K1V", self.vocabularies.mask(), persistent=False)
        for own, member in dict(zip(each, members, strict=True)).items():
            self._check_shapes(own, member)
        for name in self.names:
            stacked = stack_padded([member[name] for member in members])
            self.register_parameter(_attribute(name), nn.Parameter(stacked, requires_grad=self.is_trained(name)))

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        """Draw one trial's initial parameters, on the CPU so that they do not depend on the device."""
        raise NotImplementedError

    @classmethod
    def shapes(cls, config: Any, vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
        """Shape of every parameter of one trial, by name, for a model whose settings do not declare them."""
        drawn = cls.fresh(config, vocabulary, torch.Generator().manual_seed(0))
        return {name: tuple(tensor.shape) for name, tensor in drawn.items()}

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        """Return the logits at the positions `end_KB`, (K, B, V); or (K, BP, V) if these are (K, B, P)."""
        raise NotImplementedError

    def is_trained(self, name: str) -> bool:
        """Return whether the optimiser changes the tensor of this name."""
        return bool(self.config.is_trained(name))

    def is_parameter(self, name: str) -> bool:
        """Return whether a tensor of the state is a parameter. If not, it is a buffer, such as a running mean."""
        return True

    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        """Return each trial's mean loss (K) and its gradient by parameter, from compiled kernels.

        Only a network whose settings say `compiled` has them. Autograd takes no part.
        """
        raise NotImplementedError

    @torch.enable_grad()
    def gradients_around_compiled(self, tokens_KBT: Tensor, target_KB: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        """Return `compiled_gradients` of a network of which only a part is compiled: autograd does the rest."""
        end_KB = (tokens_KBT < self.vocabulary.readable).sum(2) - 1
        loss_K = self.losses(self(tokens_KBT, end_KB), target_KB).mean(1)
        gradients = torch.autograd.grad(loss_K.sum(), [self[name] for name in self.trained_names])
        # Without its graph, which would be kept as long as the loss.
        return loss_K.detach(), dict(zip(self.trained_names, gradients, strict=True))

    def token_table(self, name: str, x_KRD: Tensor) -> Tensor:
        """Multiply the weight of this name, (K, *O, D), with each token's embedding: (K, R, *O)."""
        weight_KOD = self[name]
        if self.kernel != TRITON or not (weight_KOD.requires_grad and torch.is_grad_enabled()):
            return self.vocabularies.by_token(
                lambda x, weight: token_table(weight, x, self.table_scratch), x_KRD, weight_KOD
            )
        table_KRO = flat_table(weight_KOD.detach(), x_KRD)
        self._tables[name] = table_KRO, x_KRD.detach()
        return torch.unflatten(table_KRO, -1, weight_KOD.shape[1:-1])

    def gradients(self, loss: Tensor, parameters: Mapping[str, Tensor]) -> list[Gradient]:
        """Return the gradient of every parameter. With kernels for GPUs, those of token tables are not written out."""
        tables, self._tables = self._tables, {}
        wanted = [tables[name][0] if name in tables else parameter for name, parameter in parameters.items()]
        found = torch.autograd.grad(loss, wanted)
        return [
            OuterProducts(gradient, tables[name][1]) if name in tables else gradient
            for name, gradient in zip(parameters, found, strict=True)
        ]

    @property
    def answers_compiled(self) -> bool:
        """Whether `forward` runs the compiled kernels: autograd cannot see through them."""
        return is_compiled(self.kernel) and not torch.is_grad_enabled()

    def __getitem__(self, name: str) -> Tensor:
        """Return the stacked parameter of this name."""
        return cast(Tensor, self._parameters[_attribute(name)])

    def reuse_gradient_memory(self) -> None:
        """Use the same memory for the gradients of every step, which are then valid until the next backward pass."""
        self.scratch = {}

    @property
    def trained_names(self) -> list[str]:
        """Names of the parameters that the optimiser changes."""
        return [name for name in self.names if self[name].requires_grad]

    @property
    def num_trials(self) -> int:
        return len(self[self.names[0]])

    def member(self, trial: int) -> State:
        """Return one trial's parameters without padding, as views."""
        return {name: self.own(name, self[name].detach(), trial) for name in self.names}

    def own(self, name: str, stack: Tensor, trial: int) -> Tensor:
        """Return one trial's part of a stack that is shaped like the parameter of this name, without padding."""
        return self._unpadded(name, stack[trial : trial + 1], self.vocabularies.each[trial])[0]

    def _unpadded(self, name: str, stack: Tensor, vocabulary: Vocabulary) -> Tensor:
        """Return a stack of trials of one vocabulary without the rows that only larger vocabularies have."""
        if not self.vocabularies.mixed or stack.dim() == 1:
            return stack
        return stack[:, : self.config.shapes(vocabulary)[name][0]]

    def part(self, trials: slice) -> "Network":
        """Return a network of consecutive trials that have the same vocabulary. Its parameters are views."""
        each = self.vocabularies.each[trials]
        if len(each) == self.num_trials and not self.vocabularies.mixed:
            return self
        part = copy.copy(self)
        part.vocabularies, part.vocabulary = Vocabularies(each), each[0]
        assert not part.vocabularies.mixed
        part._buffers = {"mask_K1V": None}
        parameters = {name: self._unpadded(name, self[name].detach()[trials], each[0]) for name in self.names}
        part._parameters = {
            _attribute(name): nn.Parameter(tensor, requires_grad=False) for name, tensor in parameters.items()
        }
        return part

    @property
    def table_scratch(self) -> Scratch | None:
        """Memory for the gradient of a token table's weight. Several vocabularies would overwrite each other's."""
        return None if self.vocabularies.mixed else self.scratch

    def with_unread_rows(self, g_KRD: Tensor) -> Tensor:
        """Return the gradient of the embedding, which is zero for tokens that are never read."""
        return nn.functional.pad(g_KRD, (0, 0, 0, self.vocabulary.size - self.vocabulary.readable))

    def head(self, h_KBH: Tensor) -> Tensor:
        """Apply the linear head to states."""
        return self.logits(_affine, h_KBH, self["head.weight"], self["head.bias"])

    def logits(self, function: Callable[..., Tensor], h_KBH: Tensor, *weights: Tensor) -> Tensor:
        """Return a logit for every token, by a function of states and of weights that have a row for every token."""
        return self.vocabularies.logits(function, cast(Tensor | None, self.mask_K1V), h_KBH, *weights)

    def without_padding(self, logits_KBV: Tensor) -> Tensor:
        """Return logits of which those of padded tokens are minus infinity."""
        mask_K1V = cast(Tensor | None, self.mask_K1V)
        return logits_KBV if mask_K1V is None else logits_KBV + mask_K1V

    def losses(self, logits_KBV: Tensor, target_KB: Tensor) -> Tensor:
        """Return the cross-entropy of every sample, (K, B): the mean over its labels, if it has several."""
        wanted = *target_KB.flatten(1).shape, self.vocabulary.size
        if logits_KBV.shape != wanted:
            raise InvalidSettings(
                [
                    f"the network of {self.config.name} returns logits of shape {tuple(logits_KBV.shape)}, not"
                    f" {wanted}: return one for each place in its second argument, or use supervision final"
                ]
            )
        losses_KN = self.vocabularies.over_vocabulary(per_trial_loss, logits_KBV, target_KB.flatten(1))
        return losses_KN if target_KB.dim() == 2 else mean_of_labels(losses_KN.view_as(target_KB), target_KB)

    def _check_shapes(self, vocabulary: Vocabulary, member: Mapping[str, Tensor]) -> None:
        """Raise an error unless the parameters have the shapes that the settings say, on which estimates depend."""
        config = self.config
        declared = {name: tuple(shape) for name, shape in config.shapes(vocabulary).items()}
        found = {name: tuple(tensor.shape) for name, tensor in member.items() if self.is_parameter(name)}
        wrong = [name for name in declared | found if declared.get(name) != found.get(name)]
        if wrong:
            facts = "; ".join(f"{name} is {found.get(name)}, not {declared.get(name)}" for name in wrong)
            raise InvalidSettings(
                [f"the network of {config.name} has other parameters than its shapes() says: {facts}"]
            )


def _attribute(name: str) -> str:
    return name.replace(".", "/")


def per_trial_loss(logits_KBV: Tensor, target_KB: Tensor) -> Tensor:
    """Return the cross-entropy of every sample, (K, B)."""
    losses_N = nn.functional.cross_entropy(logits_KBV.flatten(0, 1), target_KB.flatten(), reduction="none")
    return losses_N.view(target_KB.shape)


def mean_of_labels(x_KBP: Tensor, target_KBP: Tensor) -> Tensor:
    """Return the mean of what each sample has at its labels, (K, B)."""
    counts_KBP = target_KBP >= 0
    return (x_KBP * counts_KBP).sum(2) / counts_KBP.sum(2)


def _affine(h_KBH: Tensor, weight_KVH: Tensor, bias_KV: Tensor) -> Tensor:
    return torch.baddbmm(bias_KV[:, None], h_KBH, weight_KVH.transpose(1, 2))


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


def draw_like_torch(make: Callable[[], M], seed: int) -> M:
    """Make a module whose parameters torch draws from its global generator, which is seeded for this call only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def parameters_like_torch(make: Callable[[], nn.Module], generator: torch.Generator) -> State:
    """Return the parameters of a module that torch initialises, drawn with the seed of `generator`."""
    module = draw_like_torch(make, generator.initial_seed())
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


class PerTrial(Network):
    """Network around an ordinary module, which maps tokens (B, T), or tokens and ends (B), to logits.

    Logits are (B, T, V), of which those at each sample's end count, or (B, V) if the module is given the ends. The
    module may have buffers, tied weights, dropout and anything else that `WrappedModule` describes. Its trials share
    one program where that gives the same numbers and saves time, as `decide_stacking` finds out; elsewhere they take
    turns. Evaluations always take turns, and leave buffers as they are.
    """

    replayable = False  # any module may be wrapped, with any Python code in it

    def __init__(
        self, config: Any, vocabulary: Vocabulary | Sequence[Vocabulary], members: Sequence[Mapping[str, Tensor]]
    ):
        if not isinstance(vocabulary, Vocabulary):
            # The module is built for one vocabulary.
            assert len(set(vocabulary)) == 1, "trials of a wrapped module do not cross cells"
            vocabulary = vocabulary[0]
        self.wrapped = self._wrap(config, vocabulary)
        # Weights that were saved before a module had a certain buffer begin with the module's own.
        buffers = {name: buffer.detach() for name, buffer in self.wrapped.buffers.items()}
        super().__init__(config, vocabulary, [dict(member) | (buffers | dict(member)) for member in members])

    @classmethod
    def skeleton(cls, config: Any, vocabulary: Vocabulary) -> nn.Module:
        """Make the module of one trial, with torch.nn's usual initialisation."""
        raise NotImplementedError

    @classmethod
    def _wrap(cls, config: Any, vocabulary: Vocabulary, seed: int = 0) -> WrappedModule:
        module = draw_like_torch(lambda: cls.skeleton(config, vocabulary), seed)
        return WrappedModule(module, config.name, vocabulary.size)

    @classmethod
    def fresh(cls, config: Any, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        return cls._wrap(config, vocabulary, generator.initial_seed()).state

    @classmethod
    @functools.lru_cache(maxsize=256)
    def shapes(cls, config: Any, vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
        with prints_are_messages():  # it may be a user's module, made here only to count its parameters
            parameters = cls._wrap(config, vocabulary).parameters
        return {name: tuple(parameter.shape) for name, parameter in parameters.items()}

    @classmethod
    @functools.lru_cache(maxsize=256)
    def stacking(
        cls,
        config: Any,
        vocabulary: Vocabulary,
        shape_BT: tuple[int, ...],
        device: str,
        num_trials: int,
        places: tuple[int, ...] = (),
    ) -> Stacking:
        """Decide whether so many trials with these settings, trained on batches of this shape, share one program.

        `places` is (P,) if logits are read at P places of a sample.
        """
        generator = torch.Generator().manual_seed(0)
        shape = (num_trials, *shape_BT)
        tokens_KBT = torch.randint(vocabulary.readable, shape, generator=generator).to(device)
        end_KB = torch.randint(shape_BT[1], (*shape[:2], *places), generator=generator).to(device)
        module = cls._wrap(config, vocabulary)
        module.to(torch.device(device))
        states = [cls._wrap(config, vocabulary, seed).state for seed in range(num_trials)]
        states = [{name: tensor.to(device) for name, tensor in state.items()} for state in states]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            return decide_stacking(module, states, tokens_KBT, end_KB)

    def is_trained(self, name: str) -> bool:
        parameter = self.wrapped.parameters.get(name)
        return parameter is not None and parameter.requires_grad and super().is_trained(name)

    def is_parameter(self, name: str) -> bool:
        return name in self.wrapped.parameters

    def train(self, mode: bool = True) -> "PerTrial":
        self.wrapped.module.train(mode)
        return super().train(mode)

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        # Padding has no embedding. Any token will do, because a causal model cannot see what follows [EOI].
        readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
        self.wrapped.to(tokens_KBT.device)
        stacks = self.training and self._stacks(tokens_KBT, end_KB, NUM_TRIED)
        call = self._call_stacked if stacks else self._call_in_turn
        logits_KBV, buffers = call(readable_KBT, end_KB)
        if self.training:
            with torch.no_grad():
                for name, buffer in buffers.items():
                    self[name].copy_(buffer)
        return logits_KBV

    def _stacks(self, tokens_KBT: Tensor, end_KB: Tensor, num_trials: int) -> bool:
        (_, *shape), device, (_, _, *places) = tokens_KBT.shape, tokens_KBT.device.type, end_KB.shape
        asked = self.config, self.vocabulary, tuple(shape), device, num_trials, tuple(places)
        return self.stacking(*asked).stacked

    def _call_stacked(self, tokens_KBT: Tensor, end_KB: Tensor) -> tuple[Tensor, State]:
        """Call the module for all trials at once, or for each as a stack of one if only that is exact."""
        K = len(tokens_KBT)
        exact = K == 1 or self._stacks(tokens_KBT, end_KB, K)
        size = K if exact else 1
        logits, buffers = [], []
        stacks = (tokens_KBT, end_KB, *map(self._given, self.names))
        for tokens, end, *tensors in zip(*(torch.split(each, size) for each in stacks), strict=True):
            called = stacked_call(self.wrapped, dict(zip(self.names, tensors, strict=True)), tokens, end)
            logits.append(called[0])
            buffers.append(called[1])
        return torch.cat(logits), {name: torch.cat([each[name] for each in buffers]) for name in buffers[0]}

    def _call_in_turn(self, tokens_KBT: Tensor, end_KB: Tensor) -> tuple[Tensor, State]:
        logits, buffers = [], []
        # `unbind` stacks the gradients of all trials once; indexing would fill a gradient of the stack's size for each.
        members = zip(*(self._given(name).unbind() for name in self.names), strict=True)
        for trial, (tensors, tokens_BT, end_B) in enumerate(zip(members, tokens_KBT, end_KB, strict=True)):
            with self._seeded(trial, tokens_KBT.device):
                called = self.wrapped(dict(zip(self.names, tensors, strict=True)), tokens_BT, end_B)
            logits.append(called[0])
            buffers.append(called[1])
        return torch.stack(logits), {name: torch.stack([each[name] for each in buffers]) for name in buffers[0]}

    def _given(self, name: str) -> Tensor:
        """Return a stacked tensor for a call. A buffer is copied, because the call may change it in place."""
        return self[name] if self.is_parameter(name) else self[name].clone()

    @contextmanager
    def _seeded(self, trial: int, device: torch.device) -> Iterator[None]:
        """Let the module draw the random numbers of one trial, which depend on nothing but its seeds and the step."""
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.noise_seed(trial) if self.training else 0)
            yield
