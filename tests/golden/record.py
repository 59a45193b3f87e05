"""Records the golden values: losses and accuracies after a few training steps of every model and task.

Run it (`make golden`) after a change of numerics that raised the revision of what it changed. Values and ids whose
revision is unchanged are never overwritten: if they change, a test fails.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, it finds the `tests` package

from orch import models, tasks
from orch.models.kernel import COMPILED, COMPILED_2, PLAIN
from orch.sweeps.trial import TRAINER_REVISION, make_trial
from tests.small import MODELS, small_trial

SETTLED: dict[str, dict[str, Any]] = {"factored": {"init_scale": 0.3}}
"""Settings of a model without which its values would depend on the processor: gradients of small initial factors are
sums that cancel to rounding, and Adam makes steps of full size of them."""
VALUES = Path(__file__).with_name("values.json")
IDS = Path(__file__).with_name("ids.json")


def measure(kernel: str, trial: Any) -> list[float]:
    """Train, and return every number that numerics can change: training and validation losses, and test accuracies."""
    from orch.training.train import Training

    training = Training([trial])
    training = Training.resume([replace(training.snapshot(), kernel=kernel)])
    assert training.kernel == kernel
    while not training.finished:
        training.advance()
    (result,) = training.results
    losses = [value for point in result.curve for value in (point.train_loss, point.validation_loss)]
    return [*losses, *result.test_accuracy.values()]


def cases() -> dict[str, tuple[str, Any]]:
    """Return a kernel and a trial for each name, at a learning rate that makes steps visible.

    They are every model on one task, every task with one model, and every model that has compiled kernels, with each
    version of them.
    """
    plain = {f"model/{name}": small_trial(name, learning_rate=1e-3, **SETTLED.get(name, {})) for name in MODELS}
    plain |= {f"task/{name}": small_trial("rnn", task=name, learning_rate=1e-3) for name in sorted(tasks.REGISTRY)}
    compiled = {f"compiled/{name}": plain[f"model/{name}"] for name in MODELS if models.REGISTRY[name].compiled_from}
    later = {
        f"{COMPILED_2}/{name}": plain[f"model/{name}"]
        for name in MODELS
        if models.REGISTRY[name].compiled_kernel == COMPILED_2
    }
    kernels = {PLAIN: plain, COMPILED: compiled, COMPILED_2: later}
    return {name: (kernel, trial) for kernel, trials in kernels.items() for name, trial in trials.items()}


def revisions(trial: Any) -> dict[str, int]:
    return {"model": trial.model.revision, "task": trial.task.revision, "trainer": TRAINER_REVISION}


def identified() -> dict[str, Any]:
    named = {
        f"{task}/{model}": make_trial(task, model, **tasks.REGISTRY[task].example_settings)
        for task in sorted(tasks.REGISTRY)
        for model in MODELS
    }
    changed = make_trial(
        "state_machine", "factored", modulus=3, machine_seed=4, rank=16, learning_rate=1e-3, init_seed=2, data_seed=5
    )
    return named | {"state_machine/factored, changed": changed}


def main() -> None:
    import torch

    torch.set_num_threads(1)
    recorded = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    raised = set()
    for name, (kernel, trial) in cases().items():
        old = recorded.get(name)
        if old is None or old["revisions"] != revisions(trial):
            recorded[name] = {"revisions": revisions(trial), "values": measure(kernel, trial)}
            raised.add(name)
            print(f"recorded {name}")
    VALUES.write_text(json.dumps({name: recorded[name] for name in sorted(recorded)}, indent=1) + "\n")
    ids = json.loads(IDS.read_text()) if IDS.exists() else {}
    for name, trial in identified().items():
        if name not in ids or raised & {f"model/{trial.model.name}", f"task/{trial.task.name}"}:
            ids[name] = trial.id
    IDS.write_text(json.dumps(dict(sorted(ids.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
