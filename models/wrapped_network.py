"""The network of a model made from a class of modules."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from orch.models.config import Vocabulary
from orch.models.network import PerTrial


class WrappedNetwork(PerTrial):
    """Trials of a module, one after the other, with the logits at the end of each sample."""

    @classmethod
    def skeleton(cls, config: Any, vocabulary: Vocabulary) -> nn.Module:
        module: nn.Module = config.module(vocabulary)
        return module

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        module = self.__dict__["_skeleton"]
        takes_ends = len(inspect.signature(module.forward).parameters) > 1
        readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
        members = zip(*(self[name].unbind() for name in self.names), strict=True)
        logits = []
        for parameters, tokens_BT, end_B in zip(members, readable_KBT, end_KB, strict=True):
            given = (tokens_BT, end_B) if takes_ends else (tokens_BT,)
            output = torch.func.functional_call(module, dict(zip(self.names, parameters, strict=True)), given)
            logits.append(output if output.dim() == 2 else output[torch.arange(len(end_B)), end_B])
        return torch.stack(logits)
