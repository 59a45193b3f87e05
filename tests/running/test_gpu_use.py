"""What is recorded of the GPUs that trials use, and how many packs share one, with a stand-in for `nvidia-smi`."""

import os
import subprocess
from pathlib import Path

import pytest

from orch.planning.gpu_share import MOST_SHARING, num_sharing
from orch.planning.pack_size import memory
from orch.running import gpu_use
from orch.running.gpu_use import GpuUse, ask_nvidia, gpu_memory
from orch.store import Store
from tests.engine.conftest import wait_for
from tests.small import small_trial

ROOT = Path(__file__).parents[2]
NVIDIA_SMI = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *memory.total*) echo 40960 ;;
  *) {utilisation} ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for stand-ins of NVIDIA's programs, which come first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu_use, "SAMPLE_SECONDS", 0.01)
    gpu_use._sampler.cache_clear()
    yield tmp_path
    (tmp_path / "nvidia-smi").unlink(missing_ok=True)  # which ends the thread
    gpu_use._sampler.cache_clear()


def install(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def test_how_busy_a_gpu_was_is_the_mean_of_samples_of_the_own_gpu(programs, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    install(programs, "nvidia-smi", NVIDIA_SMI.format(log=programs / "log", utilisation="echo 50"))
    use = GpuUse("cuda")
    wait_for(lambda: use.columns()["gpu_utilisation"] is not None)
    assert use.columns() == {"gpu_utilisation": 0.5, "peak_gpu_memory_mb": None}, "no GPU was used by this process"
    assert "--id=3" in (programs / "log").read_text().splitlines()[0]


@pytest.mark.parametrize("utilisation", ["echo '[N/A]'", "exit 9", "true"])
def test_what_a_gpu_does_not_tell_is_not_zero(programs, utilisation):
    install(programs, "nvidia-smi", NVIDIA_SMI.format(log=programs / "log", utilisation=utilisation))
    use = GpuUse("cuda")
    wait_for(lambda: (programs / "log").exists())
    assert ask_nvidia("utilization.gpu") is None
    assert use.columns()["gpu_utilisation"] is None


def test_one_question_without_an_answer_does_not_end_the_samples(programs):
    once = f"[ $(wc -l < {programs / 'log'}) -ne 2 ] || exit 9; echo 50"
    install(programs, "nvidia-smi", NVIDIA_SMI.format(log=programs / "log", utilisation=once))
    use = GpuUse("cuda")
    wait_for(lambda: (programs / "log").exists() and len((programs / "log").read_text().splitlines()) > 3)
    assert use.columns()["gpu_utilisation"] == 0.5


def test_on_a_cpu_nothing_is_asked(programs):
    install(programs, "nvidia-smi", NVIDIA_SMI.format(log=programs / "log", utilisation="echo 50"))
    assert GpuUse("cpu").columns() == {"gpu_utilisation": None, "peak_gpu_memory_mb": None}
    assert not (programs / "log").exists()


def test_the_memory_of_gpus_is_asked_here_and_read_from_the_store_on_a_cluster(programs, tmp_path):
    store = Store.open(tmp_path / "runs")
    assert gpu_memory(store, on_cluster=True) is None
    store.put_json("rates/nvidia-a100.json", {"device": "A100", "ratios": {}, "memory": 42e9})
    store.put_json("rates/cpu.json", {"device": "cpu", "ratios": {}})  # as older versions wrote it
    assert gpu_memory(store, on_cluster=True) == 42e9
    install(programs, "nvidia-smi", NVIDIA_SMI.format(log=programs / "log", utilisation="echo 50"))
    assert gpu_memory(store, on_cluster=False) == 40960 * 2**20


def test_as_many_packs_share_a_gpu_as_its_memory_holds():
    pack = [small_trial("rnn")] * 3
    taken = memory(pack[0], 3, "gpu") + 0.8e9
    assert num_sharing([pack], 2.5 * taken / 0.9) == 2
    assert num_sharing([pack, pack[:1]], 2.5 * taken / 0.9) == 2, "the largest pack decides"
    assert num_sharing([pack], 0.1 * taken) == 1, "a pack that may not fit is tried alone"
    assert num_sharing([pack], 1000 * taken) == MOST_SHARING


MPS = """#!/bin/sh
[ "$1" = -d ] && exec touch {folder}/started
[ -e {folder}/started ] && echo "$(cat)" >> {folder}/asked
"""


def test_mps_is_started_once_and_only_where_there_is_a_gpu(programs):
    script = ["bash", str(ROOT / "cluster" / "mps.sh")]
    subprocess.run(script, check=True)
    install(programs, "nvidia-cuda-mps-control", MPS.format(folder=programs))
    subprocess.run(script, check=True)
    assert not (programs / "started").exists(), "there is no GPU"
    install(programs, "nvidia-smi", "#!/bin/sh\n")
    subprocess.run(script, check=True)
    assert (programs / "started").exists()
    assert not (programs / "asked").exists()
    subprocess.run(script, check=True)
    assert (programs / "asked").read_text() == "get_server_list\n"
