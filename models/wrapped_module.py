"""An ordinary `nn.Module`, called with the tensors of one trial after another. `PerTrial` makes a network of it.

The module itself is a skeleton, built once: its parameters and persistent buffers are replaced for every call. What
else it has (buffers that are not persistent, plain tensors) is the same for all trials and is never saved.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from orch.core.errors import InvalidSettings

State = dict[str, Tensor]
"""Parameters and buffers of one trial by name, without the trial axis."""


class WrappedModule:
    """A module, the names of what a trial keeps of it, and a way to call it with the tensors of any trial."""

    def __init__(self, module: nn.Module, name: str, vocabulary: int):
        self.module, self._name, self._vocabulary = module, name, vocabulary
        self.parameters = dict(module.named_parameters())
        """Every parameter once. Tied ones have the name that comes first."""
        saved = module.state_dict(keep_vars=True)
        self.buffers = {name: buffer for name, buffer in module.named_buffers() if name in saved}
        """Persistent buffers, which belong to a trial: they are stacked, saved and restored."""
        first = {id(tensor): name for name, tensor in (self.parameters | self.buffers).items()}
        self._places: list[tuple[dict[str, Any], str, str]] = []
        for owner in module.modules():
            for tensors in (owner._parameters, owner._buffers):
                for key, tensor in tensors.items():
                    if id(tensor) in first and tensor is not None:
                        self._places.append((tensors, key, first[id(tensor)]))
        self._recurrent = [each for each in module.modules() if isinstance(each, nn.RNNBase)]
        self._own = [each for each in module.modules() if not type(each).__module__.startswith("torch.nn.")]
        self._takes_ends = _takes_ends(module)
        self._device = torch.device("cpu")

    @property
    def state(self) -> State:
        """The parameters and buffers that the module was built with."""
        return {name: tensor.detach() for name, tensor in (self.parameters | self.buffers).items()}

    def __call__(self, state: Mapping[str, Tensor], tokens_BT: Tensor, end_B: Tensor) -> tuple[Tensor, State]:
        """Return the logits (B, V) at the ends, and the buffers after the call, given a trial's parameters and buffers.

        If the ends are several places of each sample, (B, P), the logits are (BP, V), and the module is given the last.
        Buffers may be changed in place. Whatever else the module remembers is forgotten, because the next call may be
        another trial's.
        """
        before = [(each, dict(vars(each))) for each in self._own]
        placeholders = [tensors[key] for tensors, key, _ in self._places]
        try:
            for tensors, key, name in self._places:
                tensors[key] = state[name]
            self._refresh_recurrent()
            last_B = end_B if end_B.dim() == 1 else end_B[:, -1]
            output = self.module(tokens_BT, last_B) if self._takes_ends else self.module(tokens_BT)
            changed = {name: tensors[key] for tensors, key, name in self._places if name in self.buffers}
        finally:
            for (tensors, key, _), placeholder in zip(self._places, placeholders, strict=True):
                tensors[key] = placeholder
            self._refresh_recurrent()
            for each, attributes in before:
                vars(each).clear()
                vars(each).update(attributes)
        return self._logits(output, tokens_BT, end_B), changed

    def _refresh_recurrent(self) -> None:
        """Let recurrent layers of torch see replaced weights, of which they keep a list."""
        for each in self._recurrent:
            each._flat_weights = [getattr(each, name, None) for name in each._flat_weights_names]

    def _logits(self, output: Any, tokens_BT: Tensor, end_B: Tensor) -> Tensor:
        B, T, V = *tokens_BT.shape, self._vocabulary
        several = end_B.dim() > 1
        if isinstance(output, Tensor) and output.shape == (B, T, V):
            if several:
                return output.take_along_dim(end_B[..., None], 1).flatten(0, 1)
            return output.take_along_dim(end_B[:, None, None], 1).squeeze(1)
        if isinstance(output, Tensor) and output.shape == (B, V) and self._takes_ends:
            if several:
                raise InvalidSettings(
                    [
                        f"{self.place}: model {self._name} returns logits only at the ends, {(B, V)}, but samples"
                        f" have labels at other places too: return them at all positions, {(B, T, V)}, or train with"
                        " supervision final"
                    ]
                )
            return output
        found = f"the shape {tuple(output.shape)}" if isinstance(output, Tensor) else f"a {type(output).__name__}"
        wanted = f"logits of shape {(B, T, V)}, which is (samples, tokens, vocabulary)"
        if self._takes_ends:
            wanted += f", or {(B, V)}"
        elif isinstance(output, Tensor) and output.shape == (B, V):
            wanted += f"; {(B, V)} needs forward(tokens, ends), because samples are padded and end at different places"
        raise InvalidSettings([f"{self.place}: model {self._name} returns {found}: return {wanted}"])

    @property
    def place(self) -> str:
        """File and line of the module's `forward`."""
        code = getattr(type(self.module).forward, "__code__", None)
        if code is None:
            return type(self.module).__name__
        return f"{code.co_filename.rpartition('/')[2]}, line {code.co_firstlineno}"

    def unsaved(self) -> Iterator[tuple[str, Tensor]]:
        """Yield buffers that are not persistent and plain tensors, with their names."""
        for path, owner in self.module.named_modules():
            prefix = f"{path}." if path else ""
            for key, tensor in (owner._buffers | vars(owner)).items():
                if isinstance(tensor, Tensor) and prefix + key not in self.buffers:
                    yield prefix + key, tensor

    def to(self, device: torch.device) -> None:
        """Move what is the same for all trials to a device: buffers that are not persistent, and plain tensors."""
        if device == self._device:
            return
        self._device = device
        for owner in self.module.modules():
            kept = {key for tensors, key, _ in self._places if tensors is owner._buffers}
            for key, buffer in owner._buffers.items():
                if buffer is not None and key not in kept:
                    owner._buffers[key] = buffer.to(device)
            for key, value in vars(owner).items():
                if isinstance(value, Tensor):
                    vars(owner)[key] = value.to(device)
                elif type(value) in (list, tuple) and any(isinstance(each, Tensor) for each in value):
                    moved = [each.to(device) if isinstance(each, Tensor) else each for each in value]
                    vars(owner)[key] = type(value)(moved)


def _takes_ends(module: nn.Module) -> bool:
    """Return whether `forward` wants the ends: a second argument without a default, or one that is called end…"""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arguments = [each for each in inspect.signature(module.forward).parameters.values() if each.kind in kinds]
    if len(arguments) < 2:
        return False
    return arguments[1].default is inspect.Parameter.empty or arguments[1].name.startswith("end")
