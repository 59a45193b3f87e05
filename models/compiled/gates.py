"""Compiled LSTM and Elman recurrences. Their twins are `recurrence/lstm.py` and `recurrence/elman.py`.

Matrix products are one per position; what lies between them is one kernel per position. Trials take turns.
"""

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.activation import sigmoid
from orch.models.compiled.jit import jit
from orch.models.compiled.matmul import product
from orch.models.compiled.ragged import Ragged, sum_rows


class GatedScan:
    """One pass over a batch: `forward`, then `backward` if states were kept. G is 4H for an LSTM, else H."""

    def __init__(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor):
        self._inputs, self._hidden_KGH = input_KRG.detach().contiguous(), hidden_KGH.detach()
        self._B = tokens_KBT.shape[1]
        self._batches = [Ragged(tokens_BT.numpy(), input_KRG.shape[1]) for tokens_BT in tokens_KBT.contiguous()]
        self._kept: list[tuple[Tensor, np.ndarray, np.ndarray]] = []

    def forward(self, keep: bool) -> Tensor:
        """Return the final states, (K, B, H). Keep what `backward` needs if asked to."""
        final_KBH = self._inputs.new_empty(len(self._inputs), self._B, self._hidden_KGH.shape[2])
        for trial, batch in enumerate(self._batches):
            self._forward(trial, batch, keep, final_KBH[trial].numpy())
        return final_KBH

    def _forward(self, trial: int, batch: Ragged, keep: bool, final: np.ndarray) -> None:
        weight_GH, table = self._hidden_KGH[trial], self._inputs[trial].numpy()
        G, H = weight_GH.shape
        num_rows = batch.num_rows if keep else self._B
        before_PH, gates, cells = torch.zeros(num_rows, H), np.empty((num_rows, G), np.float32), np.zeros(
            (num_rows, H), np.float32
        )  # fmt: skip
        nothing = np.zeros((0, G), np.float32)
        for t in range(batch.num_positions):
            rows = batch.rows(t) if keep else slice(0, batch.counts[t])
            after = batch.starts[t + 1] if keep else 0
            sums = product(before_PH[rows], weight_GH).numpy() if t > 0 else nothing
            arguments = table, batch.tokens[batch.rows(t)], sums, gates[rows], before_PH.numpy()[after:], final
            count = batch.counts[t + 1]
            if G == H:
                _elman(*arguments, batch.order, count)
            else:
                _lstm(*arguments, batch.order, count, cells[rows], cells[after:])
        if keep:
            self._kept.append((before_PH, gates, cells))

    def backward(self, g_KBH: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of the inputs and of the hidden weights."""
        g_inputs, g_hidden = torch.zeros_like(self._inputs), torch.empty_like(self._hidden_KGH)
        for trial, batch in enumerate(self._batches):
            before_PH, gates, cells = self._kept[trial]
            weight_GH = self._hidden_KGH[trial]
            g_final = g_KBH[trial].numpy()
            g_gates, g_cells = torch.empty(gates.shape), np.zeros_like(g_final)
            g_h = np.zeros((0, weight_GH.shape[1]), np.float32)
            for t in reversed(range(batch.num_positions)):
                rows = batch.rows(t)
                arguments = gates[rows], g_h, g_final, batch.order, g_gates.numpy()[rows]
                if len(weight_GH) == weight_GH.shape[1]:
                    _elman_back(*arguments)
                else:
                    _lstm_back(*arguments, cells[rows], g_cells)
                if t > 0:
                    g_h = product(g_gates[rows], weight_GH.T).numpy()
            sum_rows(batch.tokens, g_gates.numpy(), g_inputs[trial].numpy())
            # At the first position there is no state yet.
            later = slice(batch.counts[0], None)
            g_hidden[trial] = product(g_gates[later].T, before_PH[later].T)
        return g_inputs, g_hidden


@jit
def _elman(table, tokens, sums, gates, after, final, order, num_staying):
    for s in range(len(tokens)):
        h, inputs = gates[s], table[tokens[s]]
        if len(sums) > 0:
            row = sums[s]
            for m in range(len(h)):
                h[m] = 2 * sigmoid(2 * (inputs[m] + row[m])) - 1
        else:
            for m in range(len(h)):
                h[m] = 2 * sigmoid(2 * inputs[m]) - 1
        to = after[s] if s < num_staying else final[order[s]]
        for m in range(len(h)):
            to[m] = h[m]


@jit
def _elman_back(gates, g_h, g_final, order, g_gates):
    for s in range(len(gates)):
        h, out = gates[s], g_gates[s]
        g = g_h[s] if s < len(g_h) else g_final[order[s]]
        for m in range(len(h)):
            out[m] = g[m] * (1 - h[m] * h[m])


@jit
def _lstm(table, tokens, sums, gates, after, final, order, num_staying, cells, cells_after):
    """`cells` are those before the position; tanh(c) takes the place of the candidate's sum."""
    H = cells.shape[1]
    for s in range(len(tokens)):
        row, inputs, cell = gates[s], table[tokens[s]], cells[s]
        if len(sums) > 0:
            its_sums = sums[s]
            for m in range(len(row)):
                row[m] = inputs[m] + its_sums[m]
        else:
            for m in range(len(row)):
                row[m] = inputs[m]
        i, f, g, o = row[:H], row[H : 2 * H], row[2 * H : 3 * H], row[3 * H :]
        for m in range(H):
            i[m] = sigmoid(i[m])
        for m in range(H):
            f[m] = sigmoid(f[m])
        for m in range(H):
            g[m] = 2 * sigmoid(2 * g[m]) - 1
        for m in range(H):
            o[m] = sigmoid(o[m])
        to = after[s] if s < num_staying else final[order[s]]
        if s < num_staying:
            to_cell = cells_after[s]
            for m in range(H):
                to_cell[m] = f[m] * cell[m] + i[m] * g[m]
            for m in range(H):
                to[m] = o[m] * (2 * sigmoid(2 * to_cell[m]) - 1)
        else:
            for m in range(H):
                to[m] = f[m] * cell[m] + i[m] * g[m]
            for m in range(H):
                to[m] = o[m] * (2 * sigmoid(2 * to[m]) - 1)


@jit
def _lstm_back(gates, g_h, g_final, order, g_gates, cells, g_cells):
    H = cells.shape[1]
    for s in range(len(gates)):
        row, out, cell, g_cell = gates[s], g_gates[s], cells[s], g_cells[s]
        g_state = g_h[s] if s < len(g_h) else g_final[order[s]]
        i, f, g, o = row[:H], row[H : 2 * H], row[2 * H : 3 * H], row[3 * H :]
        g_i, g_f, g_g, g_o = out[:H], out[H : 2 * H], out[2 * H : 3 * H], out[3 * H :]
        for m in range(H):
            g_g[m] = 2 * sigmoid(2 * (f[m] * cell[m] + i[m] * g[m])) - 1
        for m in range(H):
            tanh = g_g[m]
            g_o[m] = g_state[m] * tanh * o[m] * (1 - o[m])
            g_cell[m] += g_state[m] * o[m] * (1 - tanh * tanh)
        for m in range(H):
            g_i[m] = g_cell[m] * g[m] * i[m] * (1 - i[m])
        for m in range(H):
            g_g[m] = g_cell[m] * i[m] * (1 - g[m] * g[m])
        for m in range(H):
            g_f[m] = g_cell[m] * cell[m] * f[m] * (1 - f[m])
        for m in range(H):
            g_cell[m] *= f[m]
