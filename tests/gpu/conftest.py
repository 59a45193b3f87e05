import pytest

from tests.gpu.process import SimulationProcess, build, reason_to_skip


@pytest.fixture(scope="session")
def simulation(tmp_path_factory):
    """Return a process with a pretended CUDA device, which all tests share because it takes seconds to start."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    process = SimulationProcess(build(tmp_path_factory.mktemp("pretend_cuda")))
    yield process
    process.close()
