"""`orch doctor`: passes on a device that is right, fails on one that is not, and leaves rates that plans use."""

import os

import pytest
import torch

from orch.core.errors import BrokenPackage
from orch.models.mamba import scan
from orch.models.recurrence import batch_positions, blocks, token_lookup
from orch.models.rnn.network import Network as RNN
from orch.planning.estimate import Basis
from orch.planning.plan import make_plan
from orch.running import doctor
from orch.running.doctor import CheckState, examine
from orch.store import Store
from orch.training import static_step, train
from tests.training.operations import Operations

pytestmark = pytest.mark.thorough


def findings(store: Store) -> dict[str, doctor.Finding]:
    """Two models stand for all: the full examination takes a minute."""
    return {each.check: each for each in examine(store.uri, "cpu", rate_seconds=0.05, names=("rnn", "rotation"))}


def test_a_healthy_cpu_passes_and_its_rates_serve_plans(tmp_path):
    store = Store.open(tmp_path)
    found = findings(store)
    assert {name for name, finding in found.items() if finding.state is CheckState.FAIL} == set()
    assert found["mamba: mamba_ssm against ours"].state is CheckState.SKIPPED
    assert found["rnn: pack and checkpoint"].detail == "bit for bit"
    plan = make_plan(["main"], "laptop", ["model=rnn,rotation"], store)
    assert {planned.basis for planned in plan.trials} == {Basis.TRIED}
    untried = make_plan(["main"], "laptop", ["model=lstm"], store)
    assert {planned.basis for planned in untried.trials} == {Basis.ASSUMED}


def test_a_device_that_computes_wrongly_fails_by_name_and_the_other_checks_go_on(tmp_path, monkeypatch):
    right = RNN.forward

    def wrong(self, tokens_KBT, end_KB):
        logits = right(self, tokens_KBT, end_KB)
        return logits if logits.dtype == torch.float64 else logits * 1.01

    monkeypatch.setattr(RNN, "forward", wrong)
    found = findings(Store.open(tmp_path))
    finding = found["rnn: outputs and gradients"]
    assert finding.state is CheckState.FAIL
    assert "differs by" in finding.detail
    assert found["rotation: outputs and gradients"].state is CheckState.PASS


def test_a_pack_that_differs_from_its_trials_alone_fails(tmp_path, monkeypatch):
    right = RNN.forward
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    monkeypatch.setattr(RNN, "forward", lambda self, tokens, end: right(self, tokens, end) * (1 + 0.1 * len(tokens)))
    finding = findings(Store.open(tmp_path))["rnn: pack and checkpoint"]
    assert finding.state is CheckState.FAIL
    assert "differs from its trials alone" in finding.detail


@pytest.fixture
def recorder(monkeypatch):
    """Record steps on the CPU, as a GPU would, unless they are to run one operation at a time."""
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    for module in (blocks, batch_positions, token_lookup):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    kind = Operations()
    for module in (doctor, train):
        monkeypatch.setattr(
            module, "find_recorder", lambda device: None if os.environ.get("ORCH_CAPTURE") == "off" else kind
        )
    return kind


def test_recorded_steps_that_compute_the_same_pass(recorder):
    assert doctor.check_recording("rotation", "cpu") == "the same losses"
    assert recorder.num_recorded == 1
    assert "ORCH_CAPTURE" not in os.environ


def test_recorded_steps_that_repeat_one_batch_fail(recorder, monkeypatch):
    right = static_step._take_step

    def stuck(update, samples_SXKB, counters, losses_KS):
        right(update, samples_SXKB[:1].expand_as(samples_SXKB), counters, losses_KS)

    monkeypatch.setattr(static_step, "_take_step", stuck)
    with pytest.raises(doctor.Failed, match="the losses of recorded steps differ by"):
        doctor.check_recording("rotation", "cpu")


def test_steps_that_cannot_be_recorded_fail(recorder, monkeypatch):
    def refuse(step):
        raise RuntimeError("not permitted")

    monkeypatch.setattr(recorder, "record", refuse)
    with pytest.raises(doctor.Failed, match="cannot be recorded"):
        doctor.check_recording("rotation", "cpu")


def test_a_broken_package_of_cuda_kernels_is_a_failure_and_not_a_skip(tmp_path, monkeypatch):
    def broken():
        raise BrokenPackage("Mamba's CUDA kernels are installed but cannot be loaded")

    monkeypatch.setattr(scan, "_kernels", broken)
    monkeypatch.setenv("ORCH_KERNEL", "plain")  # else Mamba would do without that package where triton is installed
    found = {each.check: each for each in examine(Store.open(tmp_path).uri, "cuda", 0.05, names=("mamba",))}
    finding = found["mamba: mamba_ssm against ours"]
    assert finding.state is CheckState.FAIL
    assert "cannot be loaded" in finding.detail


def test_a_store_out_of_reach_is_a_finding(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    finding = next(finding for finding in examine(str(blocked / "runs"), "cpu", names=()) if finding.check == "store")
    assert finding.state is CheckState.FAIL
