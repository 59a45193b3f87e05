"""The decision whether trials of a wrapped module share one program: `torch.func.vmap` over a stack of them.

Sharing must not change a trial's numbers. A product of matrices is rounded differently in a stack than in the plain
module, so a trial of a module that stacks is a stack of one when it is alone; the decision is then whether a stack of
one and a stack of several agree bit for bit. It depends only on the module's settings and the shape of a batch, never
on time or chance, so that every process decides alike.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from orch.models.wrapped_module import State, WrappedModule

NUM_TRIED = 3
"""Trials in the stack that is compared with stacks of one."""
_STEPS = 2
_STEP_SIZE = 0.1
_SECONDS_PER_CALL, _SECONDS_PER_ELEMENT, _SECONDS_PER_OPERATION = 8e-6, 1e-9, 1 / 40e9
"""Rough costs on one core of a server: of starting an operation, of each number it writes, of each multiplication."""
_FEWEST_CALLS, _LARGEST_WORK = 100, 0.8
"""A stack gains where a step has many operations, whose work takes less than so much of the time to start them.
Fitted to seven modules at widths 16, 64 and 128: those beyond the limits trained no faster stacked than in turn."""


@dataclass(frozen=True)
class Stacking:
    """Whether trials of a module share one program and, if not, why they take turns."""

    stacked: bool
    reason: str = ""


def stacked_call(module: WrappedModule, states: State, tokens_KBT: Tensor, end_KB: Tensor) -> tuple[Tensor, State]:
    """Return the logits and the buffers of all trials of a stack, computed in one program."""
    called: tuple[Tensor, State] = torch.func.vmap(module)(states, tokens_KBT, end_KB)
    return called


def decide_stacking(module: WrappedModule, states: Sequence[State], tokens_KBT: Tensor, end_KB: Tensor) -> Stacking:
    """Try whether trials with these states, on these samples, share one program with a gain and the same numbers."""
    try:
        with _errors_for_slow_operations():
            # First on two samples, because the reason why it cannot be stacked says more than that it would not gain.
            _train(module, states, tokens_KBT[:, :2], end_KB[:, :2], size=len(states))
            if not _gains(module, states[0], tokens_KBT[0], end_KB[0]):
                return Stacking(False, "a stack of it saves no time: its operations are few or large")
            together = _train(module, states, tokens_KBT, end_KB, size=len(states))
            alone = _train(module, states, tokens_KBT, end_KB, size=1)
    except Exception as error:  # whatever vmap or the module raises: it works in turn, where its errors are shown
        return Stacking(False, _reason(error))
    same = torch.equal if tokens_KBT.device.type == "cpu" else _close
    if not all(same(one, other) for one, other in zip(together, alone, strict=True)):
        return Stacking(False, "it rounds differently in a stack")
    return Stacking(True)


def _close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)


@contextmanager
def _errors_for_slow_operations() -> Iterator[None]:
    """Turn vmap's warning about an operation that it performs trial by trial into an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="There is a performance drop")
        yield


def _reason(error: Exception) -> str:
    message = str(error).strip().partition("\n")[0].strip()
    if "random" in message:
        return "it draws random numbers, as in dropout, which differ between trials"
    if ".item()" in message or "data-dependent control flow" in message:
        return "what it computes depends on the values of its tensors"
    if operation := re.search(r"aten::\w+", message):
        return f"torch.func.vmap cannot stack {operation[0]}"
    return f"torch.func.vmap cannot stack it ({message.partition('. ')[0].rstrip('.')})"


def _train(
    module: WrappedModule, states: Sequence[State], tokens_KBT: Tensor, end_KB: Tensor, size: int
) -> list[Tensor]:
    """Take a few steps of gradient descent in stacks of `size`, and return every number on the way."""
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    trained = [name for name, parameter in module.parameters.items() if parameter.requires_grad]
    seen: list[Tensor] = []
    for _ in range(_STEPS):
        given = {name: tensor.clone().requires_grad_(name in trained) for name, tensor in stacked.items()}
        logits = []
        parts = [torch.split(each, size) for each in (tokens_KBT, end_KB, *given.values())]
        for tokens, end, *tensors in zip(*parts, strict=True):
            # A buffer may be changed in place, and a part of a stack is a view.
            part = {name: each.clone() for name, each in zip(given, tensors, strict=True)}
            called, buffers = stacked_call(module, part, tokens, end)
            logits.append(called)
            seen += buffers.values() if size == len(states) else ()
        output = torch.cat(logits)
        gradients = torch.autograd.grad(
            torch.logsumexp(output, -1).sum(), [given[name] for name in trained], materialize_grads=True
        )
        seen = [each for each in seen if each.shape[0] == len(states)] + [output.detach(), *gradients]
        for name, gradient in zip(trained, gradients, strict=True):
            stacked[name] = stacked[name] - _STEP_SIZE * gradient
    return seen


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations that compute something, the numbers that they write, and their multiplications."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch imports its compiler at the first call, which takes seconds

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.num_calls = self.num_elements = self.num_operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.num_calls += 1
            for each in output if isinstance(output, (tuple, list)) else (output,):
                self.num_elements += each.numel() if isinstance(each, Tensor) else 0
            if count := flop_registry.get(func.overloadpacket):
                self.num_operations += count(*args, **(kwargs or {}), out_val=output)
        return output


def _gains(module: WrappedModule, state: State, tokens_BT: Tensor, end_B: Tensor) -> bool:
    """Return whether starting operations takes so much of a training step that doing it once for a stack pays."""
    trained = [name for name, parameter in module.parameters.items() if parameter.requires_grad]
    given = {name: tensor.clone().requires_grad_(name in trained) for name, tensor in state.items()}
    with Calls() as calls:
        logits, _ = module(given, tokens_BT, end_B)
        torch.autograd.grad(logits.sum(), [given[name] for name in trained], allow_unused=True)
    work: float = calls.num_elements * _SECONDS_PER_ELEMENT + calls.num_operations * _SECONDS_PER_OPERATION
    return bool(calls.num_calls >= _FEWEST_CALLS and work <= _LARGEST_WORK * calls.num_calls * _SECONDS_PER_CALL)
