import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from orch.sweeps.catalogue import Catalogue
from tests.sweeps.catalogue import catalogue_with

RAY = ("engine/", "cluster/", "notebook/test_notebook.py", "analysis/test_report.py")
"""Tests that start Ray and therefore run one at a time."""
NOT_RAY = (
    *("cluster/test_check.py", "cluster/test_destroy_aws.py", "cluster/test_init_aws.py", "cluster/test_launcher.py"),
    *("cluster/test_policies_aws.py", "cluster/test_slurm_script.py", "cluster/test_kubernetes.py"),
)
"""Files in the folders of `RAY` that do not start it."""
GPU = ("gpu/", "running/test_comparisons.py")
"""Tests of code for GPUs on a CPU, and of what `orch doctor` finds on sick devices, which take minutes."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background like this; commands that tests interrupt would ignore Ctrl-C too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Ray, and those of code for GPUs."""
    here = Path(__file__).parent
    for item in items:
        place = str(item.path.relative_to(here)) if item.path.is_relative_to(here) else ""
        if place.startswith(RAY) and not place.startswith(NOT_RAY):
            item.add_marker(pytest.mark.ray)
        if place.startswith(GPU):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Keep torch to one thread, so that two test processes do not compete for the cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests try out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def dependent() -> Catalogue:
    """Return a catalogue with the sweep `dependent`, whose trials depend on results."""
    return catalogue_with("dependent")
