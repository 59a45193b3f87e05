"""The network around any `nn.Module`, such as a user's: K trials of a `WrappedModule`, stacked or in turn."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from orch.core.prints import prints_are_messages
from orch.models.config import Vocabulary
from orch.models.initialisation import draw_like_torch
from orch.models.stacked_network import Network
from orch.models.stacking import NUM_TRIED, Stacking, decide_stacking, stacked_call
from orch.models.wrapped_module import State, WrappedModule


class PerTrial(Network):
    """Network around an ordinary module, which maps tokens (B, T), or tokens and ends (B), to logits.

    Logits are (B, T, V), of which those at each sample's end count, or (B, V) if the module is given the ends. The
    module may have buffers, tied weights, dropout and anything else that `WrappedModule` describes. Its trials share
    one program where that gives the same numbers and saves time, as `decide_stacking` finds out; elsewhere they take
    turns. Evaluations always take turns, and leave buffers as they are.
    """

    may_leave_unused = True
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
