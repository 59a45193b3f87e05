"""Batches of any task, drawn on the device from an explicit generator.

Suffixes of names are shapes: N samples, T tokens, L symbols, P places that are read, S states, V vocabulary.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from orch.tasks.task import Task

IGNORED = -100
"""Stands for a target where a sample has none. Losses are zero there, because torch's cross-entropy ignores it."""


class Batch(NamedTuple):
    tokens_NT: Tensor
    """`[BOS] inputs… [EOI]`, then padding (`task.num_readable`) up to the length of the longest possible sample."""
    end_N: Tensor
    """Position of [EOI], the only one whose prediction counts. `Sampler.label` adds others: then it is (N, P)."""
    target_N: Tensor
    """Token to predict there; (N, P) if there are several."""


def derive_seed(*parts: int | str) -> int:
    """Hash the parts to a seed that is the same on every machine and in every version."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class Sampler:
    """Draws samples of one task on one device."""

    def __init__(self, task: Task, device: torch.device | str = "cpu"):
        self.task = task
        self.device = torch.device(device)
        machine = task.machine()
        states = range(len(machine.next_state))
        padded = [[*row, here] for here, row in zip(states, machine.next_state, strict=True)]
        self._stride = len(padded[0])
        self._next_state = torch.tensor(padded, device=self.device).flatten()
        self._target = torch.tensor(machine.target, device=self.device)

    def generator(self, *seed_parts: int | str) -> torch.Generator:
        """Make a generator on the device, seeded with `derive_seed`."""
        return torch.Generator(self.device).manual_seed(derive_seed(*seed_parts))

    def draw(
        self,
        generator: torch.Generator,
        num_samples: int,
        shortest: int,
        longest: int,
        longest_N: Tensor | None = None,
    ) -> Batch:
        """Draw samples, each with a number of inputs that is uniform from `shortest` to `longest`.

        With `longest_N`, each sample has at most that many, at most `longest`; the shapes stay the same.
        """
        task, slots = self.task, self.task.slots
        symbols_NL = torch.empty(num_samples, task.num_symbols_for(longest), dtype=torch.int64, device=self.device)
        num_inputs_N = torch.randint(shortest, longest + 1, (num_samples,), generator=generator, device=self.device)
        if longest_N is not None:
            share_N = torch.rand(num_samples, generator=generator, device=self.device, dtype=torch.float64)
            num_choices_N = longest_N.to(self.device) - shortest + 1
            num_inputs_N = shortest + (share_N * num_choices_N).long()
        for position, slot in enumerate(slots):
            symbols_NL[:, position :: len(slots)].random_(slot.start, slot.stop, generator=generator)
        end_N = (num_inputs_N - 1) * len(slots) + 2
        tokens_NT = torch.nn.functional.pad(symbols_NL, (1, 1), value=task.bos)
        place_T = torch.arange(tokens_NT.shape[1], device=self.device)
        tokens_NT = torch.where(place_T < end_N[:, None], tokens_NT, task.num_readable)
        tokens_NT.scatter_(1, end_N[:, None], task.eoi)
        return Batch(tokens_NT, end_N, self.targets(tokens_NT))

    def targets(self, tokens_NT: Tensor) -> Tensor:
        """Compute the targets, with one table look-up per position for all samples at once."""
        for state_N in self._states(tokens_NT):
            last_N = state_N
        return self._target[last_N]

    def _states(self, tokens_NT: Tensor) -> Iterator[Tensor]:
        """Yield the state of every sample after each token."""
        state_N = torch.zeros(len(tokens_NT), dtype=torch.int64, device=self.device)
        for token_N in tokens_NT.unbind(1):
            state_N = self._next_state[state_N * self._stride + token_N]
            yield state_N

    def label(self, batch: Batch, interval: int | None) -> Batch:
        """Return a batch with labels also within its samples: at every `interval`-th input, and at [EOI] as before.

        The label of an input is the answer to the sequence that ends with it. Operators between inputs have none,
        because no sequence ends there. Places and labels become (N, P), where [EOI] is the last of P. A sample with
        fewer inputs than others has the label `IGNORED` for the missing ones, and its [EOI] as their place.
        """
        if interval is None:
            return batch
        tokens_NT, end_N, target_N = batch
        num_slots = len(self.task.slots)
        most_inputs, first = (tokens_NT.shape[1] - 3) // num_slots + 1, interval - 1
        place_P = 1 + num_slots * torch.arange(first, max(first, most_inputs), interval, device=self.device)
        is_there_NP = place_P < end_N[:, None]
        label_NP = torch.empty(len(tokens_NT), len(place_P), dtype=torch.int64, device=self.device)
        column_of = {1 + num_slots * (first + interval * column): column for column in range(len(place_P))}
        for place, state_N in enumerate(self._states(tokens_NT)):
            if place in column_of:
                label_NP[:, column_of[place]] = self._target[state_N]
        place_NP = torch.where(is_there_NP, place_P, end_N[:, None])
        label_NP = torch.where(is_there_NP, label_NP, IGNORED)
        return Batch(tokens_NT, torch.cat([place_NP, end_N[:, None]], 1), torch.cat([label_NP, target_N[:, None]], 1))

    def draw_balanced(self, generator: torch.Generator, num_samples: int, num_inputs: int) -> Batch:
        """Draw samples of one length whose targets are spread evenly: class counts differ by at most one.

        Two examples of parity are then one odd and one even, as in the paper's result on two examples.
        """
        classes = sorted(set(self._target.tolist()))
        wanted = [num_samples // len(classes) + (rank < num_samples % len(classes)) for rank in range(len(classes))]
        pool = self.draw(generator, 64 * (num_samples + len(classes)), num_inputs, num_inputs)
        picked = [
            (pool.target_N == target).nonzero().flatten()[:count] for target, count in zip(classes, wanted, strict=True)
        ]
        order = torch.cat(picked)
        if len(order) < num_samples:
            missing = [target for target, rows, count in zip(classes, picked, wanted, strict=True) if len(rows) < count]
            raise ValueError(f"targets {missing} hardly ever occur with {num_inputs} inputs: draw an unbalanced set")
        return Batch(*(part[order] for part in pool))


def majority(task: Task, num_inputs: int) -> float:
    """Compute the exact share of the commonest target among all sequences of `num_inputs` inputs."""
    machine = task.machine()
    num_states = len(machine.next_state)
    share_S = torch.zeros(num_states, dtype=torch.float64)
    share_S[0] = 1
    moves = []
    for slot in task.slots:
        move_SS = torch.zeros(num_states, num_states, dtype=torch.float64)
        for state, row in enumerate(machine.next_state):
            for symbol in slot:
                move_SS[state, row[symbol]] += 1 / len(slot)
        moves.append(move_SS)
    for position in range(task.num_symbols_for(num_inputs)):
        share_S = share_S @ moves[position % len(moves)]
    share_V = torch.zeros(task.vocabulary, dtype=torch.float64)
    return share_V.index_add_(0, torch.tensor(machine.target), share_S).max().item()
