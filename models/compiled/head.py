"""Compiled head and loss: logits, cross-entropy and their gradients in one pass over the samples.

Its twins are `Network.head` and torch's cross_entropy. The loss of a trial is the mean over its samples.
"""

import math

import numpy as np
import torch
from torch import Tensor

from orch.models.compiled.jit import jit
from orch.models.vocabularies import Vocabularies, with_rows


def head_loss(
    vocabularies: Vocabularies, weight_KVH: Tensor, bias_KV: Tensor, h_KBH: Tensor, target_KB: Tensor
) -> tuple[Tensor, ...]:
    """Return each trial's loss (K), and its gradients with respect to the states, the weight and the bias."""
    if not vocabularies.mixed:
        return _of_one_vocabulary(weight_KVH, bias_KV, h_KBH, target_KB)
    parts = []
    for kind, weight, bias, h, target in vocabularies.split(weight_KVH, bias_KV, h_KBH, target_KB):
        loss, g_h, *g_head = _of_one_vocabulary(weight[:, : kind.size], bias[:, : kind.size], h, target)
        parts.append((loss, g_h, *(with_rows(each, vocabularies.padded.size) for each in g_head)))
    return tuple(map(torch.cat, zip(*parts, strict=True)))


def _of_one_vocabulary(weight_KVH: Tensor, bias_KV: Tensor, h_KBH: Tensor, target_KB: Tensor) -> tuple[Tensor, ...]:
    arrays = [x.detach().contiguous().numpy() for x in (weight_KVH, bias_KV, h_KBH, target_KB)]
    weight, bias, h, _ = arrays
    loss, g_h = np.zeros(len(h), h.dtype), np.empty_like(h)
    g_weight, g_bias = np.zeros_like(weight), np.zeros_like(bias)
    _head_loss(*arrays, np.empty_like(bias[0]), loss, g_h, g_weight, g_bias)
    return tuple(map(torch.from_numpy, (loss, g_h, g_weight, g_bias)))


@jit
def _head_loss(weight, bias, h, target, logits, loss, g_h, g_weight, g_bias):
    for k in range(len(h)):
        num_samples = len(h[k])
        for s in range(num_samples):
            state, g_state = h[k, s], g_h[k, s]
            for v in range(len(logits)):
                row = weight[k, v]
                total = bias[k, v]
                for m in range(len(state)):
                    total += row[m] * state[m]
                logits[v] = total
            loss[k] += _softmax(logits, target[k, s]) / num_samples
            for m in range(len(g_state)):
                g_state[m] = 0
            for v in range(len(logits)):
                g = logits[v] / num_samples
                g_bias[k, v] += g
                row, g_row = weight[k, v], g_weight[k, v]
                for m in range(len(state)):
                    g_state[m] += g * row[m]
                    g_row[m] += g * state[m]


@jit
def _softmax(logits, target):
    """Return the cross-entropy, and put its gradient in place of the logits."""
    largest = logits[0]
    for v in range(len(logits)):
        largest = max(largest, logits[v])
    at_target, total = logits[target] - largest, logits[0] * 0
    for v in range(len(logits)):
        logits[v] = math.exp(logits[v] - largest)
        total += logits[v]
    for v in range(len(logits)):
        logits[v] /= total
    logits[target] -= 1
    return math.log(total) - at_target
