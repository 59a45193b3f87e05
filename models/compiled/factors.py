"""Compiled factored transitions: h' = W1 diag(d(x)) W2^T h. Their twin is `recurrence/factored.py`.

Like there, either every position goes through the factors, or one transition per token is multiplied out beforehand.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.jit import jit
from orch.models.compiled.matmul import product
from orch.models.compiled.normalisation import kinds_of, normalise, normalise_back, num_divisors
from orch.models.compiled.ragged import Ragged, sum_rows
from orch.models.compiled.transitions import CompiledScan, ScanGradients, TableScan
from orch.models.recurrence.factored import multiplies_out
from orch.models.recurrence.normalisation import Normalisation
from orch.models.token_table import Gradient
from orch.models.vocabularies import Vocabularies


def factored_scan(
    out_KHF: Tensor,
    weight_KDF: Tensor,
    into_KHF: Tensor,
    x_KRD: Tensor,
    vocabularies: Vocabularies,
    tokens_KBT: Tensor,
    *options: Any,
) -> CompiledScan:
    """Return the scan, by the cheaper of two orders of multiplication. `options` are those of `TableScan`."""
    factors = Factors(out_KHF, weight_KDF, into_KHF, x_KRD, vocabularies)
    if multiplies_out(tokens_KBT, factors.gate_KRF, out_KHF):
        return TableScan(MultipliedOut(factors), tokens_KBT, *options)
    return FactorScan(factors, tokens_KBT, *options)


class Factors:
    """The parameters of the recurrence, and d(x) of every readable token."""

    def __init__(
        self, out_KHF: Tensor, weight_KDF: Tensor, into_KHF: Tensor, x_KRD: Tensor, vocabularies: Vocabularies
    ):
        self.out_KHF, self.into_KHF = out_KHF.detach(), into_KHF.detach()
        self._weight_KDF, self._x_KRD, self._vocabularies = weight_KDF.detach(), x_KRD, vocabularies
        self.gate_KRF = vocabularies.by_token(torch.bmm, x_KRD, self._weight_KDF)

    def trials(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the factors of each trial and the gates of the tokens that it reads: out, gates, into."""
        stacks = (self.out_KHF, self.gate_KRF, self.into_KHF, self._vocabularies.each)
        return ((out, gates[: its.readable], into) for out, gates, into, its in zip(*stacks, strict=True))

    def gradients(self, g_out: Tensor, g_gate_KRF: Tensor, g_into: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        """Return the gradients of the embeddings and of the parameters, by name."""
        by_token, over_tokens = self._vocabularies.by_token, self._vocabularies.over_tokens
        g_weight = over_tokens(lambda x, g: torch.bmm(x.transpose(1, 2), g), self._x_KRD, g_gate_KRF)
        parameters: dict[str, Gradient] = {
            "recurrence.out": g_out,
            "recurrence.gate": g_weight,
            "recurrence.into": g_into,
        }
        return by_token(torch.bmm, g_gate_KRF, self._weight_KDF.transpose(1, 2)), parameters


class MultipliedOut:
    """One transition per token, W1 diag(d) W2^T."""

    def __init__(self, factors: Factors):
        self._factors = factors
        (K, H, _), R = factors.out_KHF.shape, factors.gate_KRF.shape[1]
        self.table_KRbbn = torch.empty(K, R, H, H, 1)
        for trial, (out, gates, into) in enumerate(factors.trials()):
            for r, gate in enumerate(gates):
                self.table_KRbbn[trial, r, :, :, 0] = product(out * gate, into)

    def backward(self, g_table_KRbbn: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        factors = self._factors
        g_out, g_into, g_gate = (torch.zeros_like(x) for x in (factors.out_KHF, factors.into_KHF, factors.gate_KRF))
        for trial, (out, gates, into) in enumerate(factors.trials()):
            for r, gate in enumerate(gates):
                g_HH = g_table_KRbbn[trial, r, :, :, 0]
                g_into[trial] += product(g_HH.T, (out * gate).T)
                g_scaled = product(g_HH, into.T)
                g_out[trial].addcmul_(g_scaled, gate)
                torch.sum(g_scaled.mul_(out), 0, out=g_gate[trial, r])
        return factors.gradients(g_out, g_gate, g_into)


class FactorScan:
    """Two matrix products per position, with the token's gates in between. Trials take turns."""

    def __init__(
        self,
        factors: Factors,
        tokens_KBT: Tensor,
        h0_KH: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ):
        self._factors, self._h0_KH = factors, h0_KH.detach()
        self._B, R = tokens_KBT.shape[1], factors.gate_KRF.shape[1]
        self._batches = [Ragged(tokens_BT.numpy(), R) for tokens_BT in tokens_KBT.contiguous()]
        self._each, self._last = kinds_of(normalisation, every_step)
        K, H = h0_KH.shape
        self._additive = torch.empty(K, 0, H) if additive_KRH is None else additive_KRH.detach().contiguous()
        self._kept: list[tuple[Tensor, ...]] = []

    def forward(self, keep: bool) -> Tensor:
        final_KBH = torch.empty(len(self._h0_KH), self._B, self._h0_KH.shape[1])
        for trial, batch in enumerate(self._batches):
            self._forward(trial, batch, keep, final_KBH[trial].numpy())
        return final_KBH

    def _forward(self, trial: int, batch: Ragged, keep: bool, final: np.ndarray) -> None:
        out_HF, into_HF = self._factors.out_KHF[trial], self._factors.into_KHF[trial]
        gate, additive = self._factors.gate_KRF[trial].numpy(), self._additive[trial].numpy()
        (H, F), num_rows = out_HF.shape, batch.num_rows if keep else self._B
        before_PH, factors_PF, gated_PF = torch.empty(num_rows, H), torch.empty(num_rows, F), torch.empty(num_rows, F)
        divisors_P1 = torch.empty(num_rows, num_divisors(self._last, 1))
        before_PH[: batch.counts[0]] = self._h0_KH[trial]
        for t in range(batch.num_positions):
            rows = batch.rows(t) if keep else slice(0, batch.counts[t])
            after = batch.starts[t + 1] if keep else 0
            tokens = batch.tokens[batch.rows(t)]
            factors_PF[rows] = product(before_PH[rows], into_HF.T)
            _gate(factors_PF[rows].numpy(), gate, tokens, gated_PF[rows].numpy())
            _enter(
                *(product(gated_PF[rows], out_HF).numpy(), additive, tokens, self._each, self._last),
                *(divisors_P1[rows].numpy(), before_PH.numpy()[after:], final, batch.order, batch.counts[t + 1]),
            )
        if keep:
            # The last states of the samples, by row, are needed to undo their normalisation.
            self._kept.append((before_PH, factors_PF, gated_PF, divisors_P1, torch.from_numpy(final)))

    def backward(self, g_KBH: Tensor) -> ScanGradients:
        factors, g_h0 = self._factors, torch.empty_like(self._h0_KH)
        g_out, g_into = torch.empty_like(factors.out_KHF), torch.empty_like(factors.into_KHF)
        g_gate, g_additive = torch.zeros_like(factors.gate_KRF), torch.zeros_like(self._additive)
        for trial, batch in enumerate(self._batches):
            out_HF, into_HF, gate_RF = factors.out_KHF[trial], factors.into_KHF[trial], factors.gate_KRF[trial]
            before_PH, factors_PF, gated_PF, divisors_P1, final_BH = self._kept[trial]
            g_u_PH, g_into_PF = torch.empty_like(before_PH), torch.empty_like(factors_PF)
            along, g_h = np.empty_like(divisors_P1[0].numpy()), torch.empty(0, before_PH.shape[1])
            for t in reversed(range(batch.num_positions)):
                rows = batch.rows(t)
                _leave(
                    *(g_h.numpy(), g_KBH[trial].numpy(), batch.order, self._each, self._last),
                    *(divisors_P1[rows].numpy(), before_PH.numpy()[batch.starts[t + 1] :], final_BH.numpy(), along),
                    g_u_PH[rows].numpy(),
                )
                back = product(g_u_PH[rows], out_HF.T)
                tokens = batch.tokens[rows]
                _gate_back(
                    *(back.numpy(), factors_PF[rows].numpy(), gate_RF.numpy(), tokens),
                    *(g_gate[trial].numpy(), g_into_PF[rows].numpy()),
                )
                g_h = product(g_into_PF[rows], into_HF)
            torch.sum(g_h, 0, out=g_h0[trial])
            g_out[trial] = product(g_u_PH.T, gated_PF.T)
            g_into[trial] = product(before_PH.T, g_into_PF.T)
            if g_additive.numel():
                sum_rows(batch.tokens, g_u_PH.numpy(), g_additive[trial].numpy())
        g_x, parameters = factors.gradients(g_out, g_gate, g_into)
        return ScanGradients(g_x, g_h0, g_additive if g_additive.numel() else None, parameters)


@jit
def _gate(factors, gate, tokens, gated):
    for s in range(len(factors)):
        row, by, to = factors[s], gate[tokens[s]], gated[s]
        for m in range(len(row)):
            to[m] = row[m] * by[m]


@jit
def _gate_back(back, factors, gate, tokens, g_gate, g_into):
    for s in range(len(back)):
        row, by, g_by, g_to, its_factors = back[s], gate[tokens[s]], g_gate[tokens[s]], g_into[s], factors[s]
        for m in range(len(row)):
            g_by[m] += row[m] * its_factors[m]
        for m in range(len(row)):
            g_to[m] = row[m] * by[m]


@jit
def _enter(u, additive, tokens, each, last, divisors, after, final, order, num_staying):
    """Add the additive term and normalise: the states of samples that go on are the first."""
    for s in range(len(u)):
        row = u[s]
        if len(additive) > 0:
            term = additive[tokens[s]]
            for m in range(len(row)):
                row[m] += term[m]
        if s < num_staying:
            normalise(row, after[s], each, divisors[s], True, 1)
        else:
            normalise(row, final[order[s]], last, divisors[s], True, 1)


@jit
def _leave(g_h, g_final, order, each, last, divisors, after, final, along, g_u):
    """Undo `_enter`."""
    for s in range(len(g_u)):
        if s < len(g_h):
            normalise_back(g_h[s], after[s], each, divisors[s], True, 1, along, g_u[s])
        else:
            place = order[s]
            normalise_back(g_final[place], final[place], last, divisors[s], True, 1, along, g_u[s])
