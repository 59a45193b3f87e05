"""SD-SSM: Terzić et al., "On the Expressiveness and Length Generalization of Selective State-Space Models on Regular
Languages" (2025, arXiv:2412.19350).

    h_t = A(x_t) h_{t-1} + B x_t, from h = 0;    A(x) = Σ_m s_m A_m with each column divided by its Lp norm
    s = softmax(S x + a);    logits = W layer_norm(h) + b

The vocabulary is tiny, so the transition of every token is computed once: see `orch.models.recurrence`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.config import Vocabulary
from orch.models.network import Network as StackedNetwork
from orch.models.network import State, normal, uniform
from orch.models.places import several_places
from orch.models.recurrence import Normalisation, block_scan
from orch.models.residual.network import by_entry, pad_rows
from orch.models.sd_ssm.config import Config

NORM_EPSILON = 1e-5
SMALLEST_NORM = 1e-6


class Network(StackedNetwork):
    config: Config

    @classmethod
    def fresh(cls, config: Config, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        def draw(name: str, shape: Sequence[int]) -> Tensor:
            if name == "embedding":
                return normal(shape, 1.0, generator)
            if name.startswith("norm."):
                return torch.full(tuple(shape), float(name == "norm.weight"))
            return uniform(shape, (3 if name == "dictionary" else 1) ** 0.5 * config.width**-0.5, generator)

        return {name: draw(name, shape) for name, shape in config.shapes(vocabulary).items()}

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        by_token = self.vocabularies.by_token
        additive_KRH = by_token(torch.bmm, x_KRD, self["input"].mT)
        h0_KH = x_KRD.new_zeros(len(x_KRD), self.config.width)
        normalisation = Normalisation("none", self.config.width)
        table_KRHH = by_token(self.transitions, x_KRD, self["selection"], self["selection_bias"], self["dictionary"])
        options, read_KBP = (h0_KH, normalisation, additive_KRH), several_places(end_KB)
        h_KBH = block_scan(table_KRHH[..., None], tokens_KBT, *options, read_KBP=read_KBP)
        normed_KBH = F.layer_norm(h_KBH, h_KBH.shape[-1:], eps=NORM_EPSILON)
        return self.head(torch.addcmul(self["norm.bias"][:, None], normed_KBH, self["norm.weight"][:, None]))

    def transitions(self, x_KRD: Tensor, selection_KmD: Tensor, bias_Km: Tensor, dictionary_KmHH: Tensor) -> Tensor:
        """Return the transition of every token that can be read: (K, R, H, H)."""
        H, p = self.config.width, self.config.norm_order
        score_KRm = torch.bmm(pad_rows(x_KRD), selection_KmD.mT) + bias_Km[:, None]
        share_KRm = score_KRm.softmax(-1)[:, : x_KRD.shape[1]]
        A_KRHH = torch.bmm(share_KRm, dictionary_KmHH.flatten(2)).view(*x_KRD.shape[:2], H, H)
        powers_KRHH = by_entry(lambda x: x.pow(p), A_KRHH.abs().clamp(min=SMALLEST_NORM).flatten(1)).view_as(A_KRHH)
        size_KR1H = by_entry(lambda x: x.pow(1 / p), powers_KRHH.sum(2).flatten(1)).view(*x_KRD.shape[:2], 1, H)
        return A_KRHH / size_KR1H
