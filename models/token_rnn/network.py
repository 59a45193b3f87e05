"""The base of the RNN and the LSTM: the parameters of torch.nn's recurrent layers, and a table of inputs by token."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orch.models.config import ModelConfig, Vocabulary
from orch.models.kernel import TRITON
from orch.models.network import Network, State, normal, uniform
from orch.models.places import several_places
from orch.models.token_table import Gradient, sum_of_products, sum_of_rows, token_table

if TYPE_CHECKING:
    from orch.models.compiled.gates import GatedScan


class TokenRNN(Network):
    """Network with the parameters and initialisation of torch.nn's recurrent layers. A subclass defines its scans."""

    @classmethod
    def fresh(cls, config: ModelConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        bound = 1 / math.sqrt(config.width)
        return {
            name: normal(shape, 1.0, generator) if name == "embedding" else uniform(shape, bound, generator)
            for name, shape in config.shapes(vocabulary).items()
        }

    def scan(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor, read_KBP: Tensor | None) -> Tensor:
        """Return the final states (K, B, H), or those after the positions `read_KBP`: (K, BP, H).

        `input_KRG` is the input's part of every gate, by readable token, and `hidden_KGH` the weight of the states.
        """
        raise NotImplementedError

    def gpu_scan(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
        """Return the final states (K, B, H), from kernels for GPUs."""
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        read_KBP = several_places(end_KB)
        if self.answers_compiled and read_KBP is None:
            return self.head(self.compiled_scan(tokens_KBT).forward(keep=False))
        scanned = self.input_table(), self["recurrence.weight_hh"], tokens_KBT
        if self.kernel == TRITON and read_KBP is None:
            return self.head(self.gpu_scan(*scanned))
        return self.head(self.scan(*scanned, read_KBP))

    def compiled_scan(self, tokens_KBT: Tensor) -> "GatedScan":
        """Return the compiled recurrence over a batch."""
        from orch.models.compiled.gates import GatedScan

        return GatedScan(self.input_table(), self["recurrence.weight_hh"], tokens_KBT)

    @torch.no_grad()
    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        from orch.models.compiled.head import head_loss

        scan, vocabularies = self.compiled_scan(tokens_KBT), self.vocabularies
        head = self["head.weight"], self["head.bias"]
        loss_K, g_KBH, g_weight, g_bias = head_loss(vocabularies, *head, scan.forward(keep=True), target_KB)
        g_input_KRG, g_hidden = scan.backward(g_KBH)
        weight_ih, x_KRD = self["recurrence.weight_ih"], self["embedding"][:, : self.vocabulary.readable]
        g_bias_KG = vocabularies.over_tokens(sum_of_rows, g_input_KRG)
        return loss_K, {
            "embedding": self.with_unread_rows(vocabularies.by_token(torch.bmm, g_input_KRG, weight_ih)),
            "recurrence.weight_ih": vocabularies.over_tokens(sum_of_products, g_input_KRG, x_KRD),
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
        if self.kernel == TRITON:
            return self.token_table("recurrence.weight_ih", x_KRD) + bias_KG[:, None]
        return self.vocabularies.by_token(
            lambda x, weight, bias: token_table(weight, x, self.table_scratch) + bias[:, None],
            *(x_KRD, self["recurrence.weight_ih"], bias_KG),
        )
