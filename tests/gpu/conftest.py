from importlib.util import find_spec

import pytest

from tests.gpu.process import OtherProcess, build, reason_to_skip


@pytest.fixture(scope="session")
def simulation(tmp_path_factory):
    """Return a process with a pretended CUDA device, which all tests share because it takes seconds to start."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    process = OtherProcess("tests.gpu.simulation", str(build(tmp_path_factory.mktemp("pretend_cuda"))))
    yield process
    process.close()


@pytest.fixture(scope="session")
def triton():
    """Skip the test where triton is missing."""
    if find_spec("triton") is None:
        pytest.skip("triton is not installed: pip install triton, on Linux")


@pytest.fixture(scope="session")
def interpreter(triton):
    """Return a process in which kernels of Triton run on CPU tensors."""
    process = OtherProcess("tests.gpu.interpreter", TRITON_INTERPRET="1")
    yield process
    process.close()
