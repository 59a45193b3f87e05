"""The sweep in `examples/` fulfils the contracts of built-in models and tasks."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from orch.models.network import build
from orch.sweeps.expansion import expand
from orch.sweeps.scales import SCALES, SMOKE
from orch.sweeps.selection import Results
from orch.tasks.sampling import Sampler
from orch.usercode import name_sweeps
from tests.command_line import orch
from tests.new_process import command_imports

EXAMPLE = Path(__file__).parents[2] / "examples" / "gated_sweep.py"
NAMED = name_sweeps([str(EXAMPLE)])
(NAME,), CATALOGUE = NAMED.names, NAMED.catalogue
HERE = replace(SMOKE, definitions=CATALOGUE)


def network_and_batch(gate):
    task, model = HERE.task("resettable_addition", 3), HERE.model("gated", gate=gate)
    trial = HERE.trial(task, model, learning_rate=1e-3, seed=0)
    network = build(model, trial.vocabulary, [torch.Generator().manual_seed(0)])
    sampler = Sampler(task)
    return task, network, sampler.draw(sampler.generator(0), 16, 2, 10)


@pytest.mark.parametrize("scale", SCALES)
def test_the_example_has_two_models_of_each_kind_on_both_tasks_at_every_scale(scale):
    expanded = expand([NAME], SCALES[scale], Results.none(), CATALOGUE).trials.values()
    kinds = {(each.trial.model.name, each.trial.model.summary, each.trial.task.name) for each in expanded}
    assert len(kinds) == 8
    main = expand(["main"], SCALES[scale], Results.none()).trials
    shared = {each.trial.model.name for each in expanded if each.id in main}
    assert shared == {"lstm", "rotation"}


@pytest.mark.parametrize("gate", ["positive", "signed"])
def test_the_network_of_the_example_reads_every_input_and_nothing_after_the_end(gate):
    task, network, batch = network_and_batch(gate)
    tokens, end = batch.tokens_NT[None], batch.end_N[None]
    logits = network(tokens, end)
    assert logits.shape == (1, 16, task.vocabulary)
    longer = torch.nn.functional.pad(tokens, (0, 7), value=task.num_readable)
    assert torch.equal(network(longer, end), logits)
    changed = tokens.clone()
    changed[:, :, 1] = (changed[:, :, 1] + 1) % 3
    assert ((network(changed, end) - logits).abs().amax(-1) > 0).all()


def test_the_task_of_the_example_forgets_at_every_reset():
    task = HERE.task("resettable_addition", 3)
    assert task.fold([2, 2]) == 1
    assert task.fold([2, 2, 3, 2]) == 2
    batch = network_and_batch("signed")[2]
    for tokens, end, target in zip(
        batch.tokens_NT.tolist(), batch.end_N.tolist(), batch.target_N.tolist(), strict=True
    ):
        assert task.fold(tokens[1:end]) == target


def test_planning_the_example_imports_neither_torch_nor_ray(tmp_path):
    arguments = ["plan", str(EXAMPLE), "--store", str(tmp_path / "none")]
    assert command_imports(arguments, {"torch", "ray", "pandas", "transformers"}, tmp_path) == set()
    assert "\n24 of them are in several sweeps; a result counts for all\n" in orch(*arguments).stdout
