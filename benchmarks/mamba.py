"""Our Mamba compared with the CPU path of transformers, with equal weights and equal outputs, on one core.

Usage: python benchmarks/mamba.py
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import MambaConfig, MambaForCausalLM

from orch.models import Vocabulary
from orch.models.mamba.config import Config
from orch.models.mamba.network import Network
from orch.models.network import build

WIDTH, BATCH, TRAINING_TOKENS, EVALUATION_TOKENS = 256, 64, 12, 502
VOCABULARY = Vocabulary(size=7, readable=7)

Answer = Callable[[Tensor, Tensor], Tensor]
"""Maps tokens (B, T) and ends (B) to logits (B, V)."""


def both(layers: int) -> tuple[tuple[nn.Module, Answer], tuple[nn.Module, Answer]]:
    ours = build(Config(width=WIDTH, layers=layers), VOCABULARY, [torch.Generator().manual_seed(1)])
    settings = MambaConfig(
        vocab_size=VOCABULARY.size,
        hidden_size=WIDTH,
        num_hidden_layers=layers,
        time_step_rank=ours.config.time_step_rank,
        use_mambapy=False,
        use_cache=False,
    )
    theirs = MambaForCausalLM(settings)
    member = ours.member(0)
    theirs.load_state_dict(member | {"lm_head.weight": member["backbone.embeddings.weight"]})

    def their_answer(tokens_BT: Tensor, end_B: Tensor) -> Tensor:
        return theirs(tokens_BT).logits[torch.arange(len(end_B)), end_B]

    return (ours, lambda tokens_BT, end_B: ours(tokens_BT[None], end_B[None])[0]), (theirs, their_answer)


def samples(num_tokens: int, shortest: int) -> tuple[Tensor, Tensor, Tensor]:
    tokens_BT = torch.randint(VOCABULARY.readable, (BATCH, num_tokens))
    return tokens_BT, torch.randint(shortest - 1, num_tokens, (BATCH,)), torch.randint(VOCABULARY.size, (BATCH,))


def assert_equal(ours: Tensor, theirs: Tensor) -> None:
    assert (ours - theirs).abs().max() < 1e-4 * theirs.abs().max()


def training_steps(layers: int) -> list[Callable[[], None]]:
    tokens_BT, end_B, target_B = samples(TRAINING_TOKENS, shortest=3)
    steps, found = [], []
    for model, answer in both(layers):
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

        def backward(answer: Answer = answer, optimiser: torch.optim.Optimizer = optimiser) -> None:
            optimiser.zero_grad()
            cross_entropy(answer(tokens_BT, end_B), target_B).backward()

        def step(backward: Callable[[], None] = backward, optimiser: torch.optim.Optimizer = optimiser) -> None:
            backward()
            optimiser.step()

        backward()
        if isinstance(model, Network):
            numbers = {name: model[name].grad[0] for name in model.names}
        else:
            numbers = {name: parameter.grad for name, parameter in model.named_parameters()}
        found.append(numbers | {"logits": answer(tokens_BT, end_B)})
        steps.append(step)
    for name, number in found[0].items():
        assert_equal(number, found[1][name])
    return steps


def evaluations(layers: int) -> list[Callable[[], Tensor]]:
    tokens_BT, end_B, _ = samples(EVALUATION_TOKENS, shortest=EVALUATION_TOKENS)

    def evaluation(answer: Answer) -> Callable[[], Tensor]:
        return torch.no_grad()(lambda: answer(tokens_BT, end_B))

    ours, theirs = (evaluation(answer) for _, answer in both(layers))
    assert_equal(ours(), theirs())
    return [ours, theirs]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = [(f"training step, {n} layer{'s' * (n > 1)}", training_steps(n), 15) for n in (1, 4)]
    rows.append((f"evaluation of {BATCH} x {EVALUATION_TOKENS}, 1 layer", evaluations(1), 5))
    print(f"{'width ' + str(WIDTH) + ', one core, ms':36}{'ours':>8}{'transformers':>14}{'ratio':>7}")
    for name, sides, repetitions in rows:
        times: list[list[float]] = [[], []]
        for _ in range(repetitions):
            for side, taken in zip(sides, times, strict=True):
                start = time.perf_counter()
                side()
                taken.append(1000 * (time.perf_counter() - start))
        ours, theirs = map(statistics.median, times)
        print(f"{name:36}{ours:8.0f}{theirs:14.0f}{theirs / ours:7.1f}")


if __name__ == "__main__":
    main()
