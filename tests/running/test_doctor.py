"""`orch doctor`: passes on a device that is right, fails on one that is not, and leaves rates that plans use."""

import pytest
import torch

from orch.models.rnn.network import Network as RNN
from orch.planning.estimate import Basis
from orch.planning.plan import make_plan
from orch.running import doctor
from orch.running.doctor import CheckState, examine
from orch.store import Store

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
    monkeypatch.setattr(RNN, "forward", lambda self, tokens, end: right(self, tokens, end) * (1 + 0.1 * len(tokens)))
    finding = findings(Store.open(tmp_path))["rnn: pack and checkpoint"]
    assert finding.state is CheckState.FAIL
    assert "differs from its trials alone" in finding.detail


def test_a_store_out_of_reach_is_a_finding(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    finding = next(finding for finding in examine(str(blocked / "runs"), "cpu", names=()) if finding.check == "store")
    assert finding.state is CheckState.FAIL
