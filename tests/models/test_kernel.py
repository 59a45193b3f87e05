"""The choice of the kernel on a GPU, and where a trial that began with one goes on with it."""

import dataclasses

import pytest
import torch

from orch import models
from orch.core.errors import InvalidSettings
from orch.models import kernel
from orch.models.kernel import COMPILED, PLAIN, TRITON, choose_kernel
from orch.training import train
from orch.training.train import Training
from tests.small import small_trial


@pytest.fixture
def with_triton(monkeypatch):
    """Return a function that pretends that triton is installed or not, and sets ORCH_KERNEL."""

    def pretend(found: bool, wanted: str = "") -> None:
        monkeypatch.setenv("ORCH_KERNEL", wanted)
        monkeypatch.setattr(kernel, "triton_found", lambda: found)
        monkeypatch.setattr(train, "triton_found", lambda: found)

    return pretend


def test_a_gpu_runs_triton_where_it_is_installed_and_the_model_has_kernels(with_triton):
    with_triton(True)
    assert choose_kernel("cuda", has_triton=True) == choose_kernel("cuda:0", has_triton=True) == TRITON
    assert choose_kernel("cuda", has_triton=False) == choose_kernel("mps", has_triton=True) == PLAIN
    with_triton(False)
    assert choose_kernel("cuda", has_triton=True) == PLAIN


def test_the_user_can_turn_triton_off_or_insist_on_it(with_triton):
    with_triton(True, PLAIN)
    assert choose_kernel("cuda", has_triton=True) == PLAIN
    with_triton(True, COMPILED)
    assert choose_kernel("cuda", has_triton=True) == TRITON
    with_triton(False, TRITON)
    with pytest.raises(InvalidSettings, match="triton or a C compiler is not installed"):
        choose_kernel("cuda", has_triton=True)


def test_nothing_changes_on_a_cpu(with_triton):
    with_triton(True, TRITON)
    assert choose_kernel("cpu", has_triton=True) == COMPILED
    assert choose_kernel("cpu", prefers_compiled=False, has_triton=True) == PLAIN
    assert not models.REGISTRY["bilinear"]().uses_triton("cpu")


def test_a_model_derived_from_one_with_kernels_for_gpus_runs_the_plain_kernel(with_triton):
    with_triton(True)

    class Derived(models.REGISTRY["bilinear"]):
        name = "derived"

    assert models.REGISTRY["bilinear"]().kernel_name("cuda") == TRITON
    assert Derived().kernel_name("cuda") == PLAIN


def test_a_trial_goes_on_with_the_kernel_for_gpus_that_it_began_with(with_triton):
    with_triton(True, PLAIN)
    plain = Training([small_trial("bilinear")]).snapshot()
    began = dataclasses.replace(plain, kernel=TRITON)
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert train._kernel_to_go_on_with([began], cuda) == TRITON
    assert train._kernel_to_go_on_with([began], cpu) == PLAIN
    with_triton(True)
    assert train._kernel_to_go_on_with([plain], cuda) == PLAIN
    with_triton(False)
    with pytest.raises(InvalidSettings, match="pip install triton"):
        train._kernel_to_go_on_with([began], cuda)
