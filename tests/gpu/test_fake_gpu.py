"""The code for GPUs, run on fake tensors that are on device "cuda" and have no data: see `simulation.py`."""

from typing import Any

import pytest

from orch import models, tasks
from orch.models.kernel import PLAIN, TRITON, triton_found
from tests.gpu.kernels import KERNELS, KINDS, TRITON_KERNELS
from tests.small import TYPICAL_MODELS

CEILINGS = [(PLAIN, kind, KERNELS[kind]) for kind in KINDS] + [
    (TRITON, kind, ceiling) for kind, ceiling in TRITON_KERNELS.items()
]


def num_stacked(model: str) -> int:
    """Return the size of a pack. Trials of a model that does not stack take turns, and two show what nine would."""
    return 9 if models.REGISTRY[model].packs else 2


@pytest.fixture(scope="session")
def trained(simulation) -> Any:
    """Return a function that trains a pack, once for all tests that ask for it."""
    known: dict[Any, dict[str, Any]] = {}

    def train(model: str, task: str, size: int, kernel: str, **settings: Any) -> dict[str, Any]:
        if kernel == TRITON and not triton_found():
            pytest.skip("triton is not installed: pip install triton, on Linux")
        key = model, task, size, kernel, tuple(settings.items())
        if key not in known:
            pack = {"model": model, "task": task, "size": size, "settings": settings}
            known[key] = simulation.call("train_pack", kernel=kernel, **pack)
            assert known[key]["kernel"] in (kernel, "mamba_ssm")
        return known[key]

    return train


# Tasks differ in their vocabulary and in the tokens of an input. Kernels for GPUs are run on one task of each kind.
PACKS = [(model, PLAIN, task) for model in TYPICAL_MODELS for task in sorted(tasks.REGISTRY)] + [
    (model, TRITON, task)
    for model in TYPICAL_MODELS
    if models.REGISTRY[model]().has_gpu_kernels
    for task in ("modular_addition", "modular_arithmetic")
]


@pytest.mark.parametrize(("model", "kernel", "task"), PACKS)
def test_a_training_runs_on_the_device_waits_for_nothing_and_takes_the_memory_that_is_planned(
    trained, model, kernel, task
):
    """No mixed devices and no operation that depends on data: either is an error for fake tensors."""
    for size in (1, num_stacked(model)):
        found = trained(model, task, size, kernel)
        assert found["with_host"] == []
        assert found["sizes"] == [size, size - 1], "the first trial stops at the first validation"
        assert found["num_results"] == size
        assert found["reads_at_validation"] <= 5, "a validation reads its scores, the losses, and those of a test"
        assert found["devices"] == ["cuda:0"]
        assert found["resumed_at"] == 3
        assert found["peak"] <= found["predicted"], (size, "validations and tests included")
        if models.REGISTRY[model].packs:
            # Else packs would be smaller than they could be. Trials of a few megabytes need not be known so well.
            assert found["predicted"] <= 2 * found["peak"] + 20e6 * size, size


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_labels_within_sequences_are_read_on_the_device_in_the_memory_that_is_planned(trained, model):
    found = trained(model, "modular_arithmetic", num_stacked(model), PLAIN, supervision="every")
    assert found["with_host"] == []
    assert found["num_results"] == num_stacked(model)
    assert found["reads_at_validation"] <= 7, "a validation reads its scores, of which there are three, and so on"
    assert found["devices"] == ["cuda:0"]
    assert found["peak"] <= found["predicted"]


CELLS = [("modular_addition", 2), ("modular_addition", 5), ("dihedral", 4), ("modular_arithmetic", 3)]
"""Four vocabularies and two numbers of tokens per input."""


@pytest.mark.parametrize(
    ("model", "kernel"),
    [(model, PLAIN) for model in TYPICAL_MODELS if models.REGISTRY[model].packs]
    + [(model, TRITON) for model in TYPICAL_MODELS if models.REGISTRY[model]().has_gpu_kernels],
)
def test_a_pack_across_cells_runs_on_the_device_and_no_step_waits_for_the_host(simulation, trained, model, kernel):
    alone = trained(model, "modular_arithmetic", 8, kernel)
    found = simulation.call("train_across_cells", model=model, cells=CELLS, size=2, kernel=kernel)
    assert found["with_host"] == []
    assert found["sizes"] == [8, 4], "the first trial of each task stops at the first validation"
    assert found["num_results"] == 8
    assert found["reads_at_validation"] <= 4 * 2 + 1 + 4 * 2, "the scores of each task, the losses, and those of tests"
    assert found["devices"] == ["cuda:0"]
    assert found["resumed_at"] == 3
    assert found["own_shapes"]
    assert found["peak"] <= found["predicted"]
    # One operation serves all vocabularies: of the longest task, and a mask.
    assert found["kernels"] <= alone["kernels"] + 2


@pytest.mark.parametrize(("kernel", "kind", "ceiling"), CEILINGS)
def test_every_variant_starts_no_more_kernels_and_takes_no_more_memory_than_planned(trained, kernel, kind, ceiling):
    model, settings = KINDS[kind]
    found = trained(model, "modular_addition", 1, kernel, **settings)
    most = ", ".join(f"{count} {name}" for name, count in found["most"])
    assert found["kernels"] <= ceiling, f"a step starts {found['kernels']} kernels, most of them {most}"
    assert found["validation_kernels"] < 0.55 * found["kernels"], "then recording validations would pay"
    assert found["peak"] <= found["predicted"]
    assert found["kernels"] > 0.9 * ceiling, f"a step starts {found['kernels']} kernels: lower the ceiling"


@pytest.mark.parametrize("how", ["item", "bool", "nonzero"])
def test_a_step_that_waits_for_the_device_would_be_noticed(simulation, how):
    assert simulation.call("wait_in_a_step", how=how) in ("DataDependentOutputException", "DynamicOutputShapeException")


def test_a_step_that_copies_to_the_host_would_be_noticed(simulation):
    assert simulation.call("copy_in_a_step") == ["_to_copy"]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_checkpoint_is_copied_to_pinned_memory_on_a_stream_of_its_own_and_the_host_does_not_wait(
    simulation, model, static
):
    size = num_stacked(model)
    found = simulation.call("copy_pack", model=model, size=size, static=static)
    ordered = [
        ["side waits for training", 1],
        ["cuda to cpu on side", found["num_tensors"]],
        ["event recorded on side", 1],
        ["training waits for event", 1],
        ["copied", 1],
        ["host waits for event", 1],
    ]
    first, second = found["logs"]
    assert first == [["pinned memory", found["num_tensors"]], *ordered]
    assert second == ordered, "the second copy uses the memory of the first"
    assert found["devices"] == ["cpu"]
    assert found["steps"] == [2] * size
