"""The base of the networks of the bilinear family: embedding, initial state, additive terms, normalisation and head."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from orch.models.bilinear_family.config import BilinearFamilyConfig
from orch.models.config import Vocabulary
from orch.models.kernel import TRITON
from orch.models.network import Network, State, normal, uniform
from orch.models.places import several_places
from orch.models.recurrence import Normalisation
from orch.models.token_table import Gradient, sum_of_products, sum_of_rows

if TYPE_CHECKING:
    from orch.models.compiled.transitions import CompiledScan


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
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        additive_KRH: Tensor | None,
        read_KBP: Tensor | None = None,
    ) -> Tensor:
        """Return the final states (K, B, H), given the embedding of every readable token.

        If `read_KBP` is given, return the states after these positions: (K, BP, H).
        """
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        read_KBP = several_places(end_KB)
        if self.answers_compiled and self.answers_faster and read_KBP is None:
            return self.head(self._compiled_scan(x_KRD, tokens_KBT).forward(keep=False))
        normalisation, every_step = self._normalisation()
        if self.kernel == TRITON and read_KBP is None:
            return self.head(self.gpu_scan(x_KRD, tokens_KBT, normalisation, every_step, self._additive(x_KRD)))
        each = normalisation if every_step else Normalisation("none", self.config.state_block)
        asked = () if read_KBP is None else (read_KBP,)
        h_KBH = self.scan(x_KRD, tokens_KBT, each, self._additive(x_KRD), *asked)
        return self.head(h_KBH if every_step else normalisation(h_KBH))

    def _normalisation(self) -> tuple[Normalisation, bool]:
        """Return the normalisation, and whether it applies at every step or only at the last."""
        config = self.config
        kind, _, final = (config.train_normalisation if self.training else config.eval_normalisation).partition("-")
        return Normalisation(kind, config.state_block), not final

    def gpu_scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ) -> Tensor:
        """Return the final states (K, B, H), normalised at every step or only at the last, from kernels for GPUs."""
        raise NotImplementedError

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
    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        from orch.models.compiled.head import head_loss

        x_KRD = self["embedding"][:, : self.vocabulary.readable]
        frozen = self.config.frozen
        scan = self._compiled_scan(x_KRD, tokens_KBT)
        h_KBH = scan.forward(keep=not frozen)
        head = self["head.weight"], self["head.bias"]
        loss_K, g_KBH, g_weight, g_bias = head_loss(self.vocabularies, *head, h_KBH, target_KB)
        gradients: dict[str, Gradient] = {"head.weight": g_weight, "head.bias": g_bias}
        if frozen:
            return loss_K, gradients
        g_x, g_h0, g_additive, parameters = scan.backward(g_KBH)
        gradients |= parameters | {"initial_state": g_h0}
        if g_additive is not None:
            if "input" in self.config.additive:
                gradients["additive.input"] = self.vocabularies.over_tokens(sum_of_products, g_additive, x_KRD)
                g_x = g_x + self.vocabularies.by_token(torch.bmm, g_additive, self["additive.input"])
            if "constant" in self.config.additive:
                gradients["additive.constant"] = self.vocabularies.over_tokens(sum_of_rows, g_additive)
        return loss_K, gradients | {"embedding": self.with_unread_rows(g_x)}

    def _additive(self, x_KRD: Tensor) -> Tensor | None:
        names = [name for name in ("input", "constant") if name in self.config.additive]
        if not names:
            return None

        def terms(x_KRD: Tensor, *parameters: Tensor) -> Tensor:
            by_name, additive = dict(zip(names, parameters, strict=True)), None
            if "input" in by_name:
                additive = torch.bmm(x_KRD, by_name["input"].transpose(1, 2))
            if "constant" in by_name:
                constant = by_name["constant"][:, None]
                additive = constant.expand_as(x_KRD) if additive is None else additive + constant
            return cast(Tensor, additive)

        return self.vocabularies.by_token(terms, x_KRD, *(self[f"additive.{name}"] for name in names))
