"""`orch doctor`: its findings, what it says of Mamba's CUDA packages, and the rates that it leaves for plans."""

import pytest
import torch

from orch.models.mamba import scan
from orch.models.rnn.network import Network as RNN
from orch.planning.estimate import Basis
from orch.planning.plan import make_plan
from orch.running.doctor import CheckState, Failed, Finding, Skipped, examine, mamba_kernels
from orch.running.doctor.examined_trials import published, small
from orch.running.doctor.floor import DeviceRates, Floor
from orch.running.doctor.timing import Timing, count_launches, describe, pack_sizes
from orch.store import Store
from orch.training.train import Training
from tests.mamba_packages import mamba_packages

NEITHER = "mamba_ssm and causal_conv1d are not installed: orch's own scan runs here"


def findings(store: Store) -> dict[str, Finding]:
    """Two models stand for all: the full examination takes minutes."""
    return {each.check: each for each in examine(store.uri, "cpu", rate_seconds=0.05, names=("rnn", "rotation"))}


@pytest.mark.thorough
def test_a_healthy_cpu_passes_and_its_rates_serve_plans(tmp_path):
    store = Store.open(tmp_path)
    found = findings(store)
    assert {name for name, finding in found.items() if finding.state is not CheckState.PASS} == set()
    assert found["rnn: pack"].detail == "losses and gradients bit for bit those of each trial alone"
    assert "× its floor (arithmetic" in found["rnn: speed"].detail
    assert "; pack of 9: " in found["rnn: speed"].detail
    (stored,) = store.list_json("rates").values()
    assert stored.keys() == {"device", "host", "memory", "ratios", "packs"}
    assert {model: {*sizes} for model, sizes in stored["packs"].items()} == {"rnn": {"1", "9"}, "rotation": {"1", "9"}}
    assert all(0 < seconds < 1 for sizes in stored["packs"].values() for seconds in sizes.values())
    plan = make_plan(["main"], "laptop", ["model=rnn,rotation"], store)
    assert {planned.basis for planned in plan.trials} == {Basis.TRIED}
    untried = make_plan(["main"], "laptop", ["model=lstm"], store)
    assert {planned.basis for planned in untried.trials} == {Basis.ASSUMED}


@pytest.mark.thorough
def test_a_device_that_computes_wrongly_fails_by_name_and_the_other_checks_go_on(tmp_path, monkeypatch):
    right = RNN.forward

    def wrong(self, tokens_KBT, end_KB):
        logits = right(self, tokens_KBT, end_KB)
        return logits if logits.dtype == torch.float64 else logits * 1.01

    monkeypatch.setattr(RNN, "forward", wrong)
    found = findings(Store.open(tmp_path))
    finding = found["rnn: gradients"]
    assert finding.state is CheckState.FAIL
    assert "from double precision on the CPU, and rounding explains up to" in finding.detail
    assert found["rotation: gradients"].state is CheckState.PASS


def test_a_store_out_of_reach_is_a_finding_and_every_check_says_that_it_runs(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    found = list(examine(str(blocked / "runs"), "cpu", names=()))
    assert [each.state for each in found if each.check == "store"] == [CheckState.RUNNING, CheckState.FAIL]
    assert [each.detail for each in found if each.state is CheckState.RUNNING] == ["1 of 3", "2 of 3", "3 of 3"]


def test_rates_of_other_models_and_of_earlier_versions_are_kept(tmp_path):
    store = Store.open(tmp_path)
    store.put_json("rates/cpu.json", {"device": "cpu", "host": "old", "ratios": {"lstm": 2.0}})
    timing = Timing(store.uri, "cpu", 0.01)
    timing.measure("rotation")
    assert timing.record() == "the times of 1 model are in rates/cpu.json of the store, for orch plan"
    stored = store.get_json("rates/cpu.json")
    assert stored["ratios"].keys() == {"lstm", "rotation"}
    assert stored["packs"].keys() == {"rotation"}


def test_packs_are_timed_in_the_sizes_that_the_planner_may_choose():
    assert pack_sizes(published("rnn"), "cpu") == [1, 9]
    assert pack_sizes(published("rnn"), "cuda") == [1, 9, 27]
    assert pack_sizes(published("bilinear"), "cuda") == [1, 9], "27 would take more memory than a pack may"
    assert pack_sizes(published("rnn", width=90), "cpu") == [1], "it runs alone, because a stack rounds differently"


def test_the_floor_grows_with_the_pack_and_launches_count_only_where_steps_start_them(monkeypatch):
    rates, trial = DeviceRates(), small("rnn")
    one, nine = (rates.floor(trial, size, 500 * size) for size in (1, 9))
    assert nine.arithmetic == pytest.approx(9 * one.arithmetic)
    assert nine.states == pytest.approx(9 * one.states)
    assert one.launches == 0
    assert rates.floor(trial, 1, 500, num_launches=100).launches == 100 * rates.seconds_per_launch
    assert count_launches(Training([published("rnn")])) == 0, "compiled"
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    assert 100 < count_launches(Training([published("rnn")])) < 1000


def test_a_step_is_shown_beside_its_floor():
    floor = Floor(arithmetic=3.5e-3, adam=5.3e-3, states=0.05e-3)
    assert describe(23e-3, floor) == "23 ms a step, 2.6× its floor (arithmetic 3.5, Adam 5.3 ms)"


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Return a function that installs Mamba's CUDA packages with these contents."""
    with mamba_packages(tmp_path, monkeypatch, SCAN) as install:
        yield install


SCAN = """
import torch
def selective_scan_fn(u, delta, A, B, C):
    h, outputs = u.new_zeros(*u.shape[:2], A.shape[1]), []
    for t in range(u.shape[2]):
        B_t, C_t = (each[..., t].repeat_interleave(len(A) // each.shape[1], dim=1) for each in (B, C))
        h = torch.exp(delta[:, :, t, None] * A) * h + (delta * u)[:, :, t, None] * B_t
        outputs.append((h * C_t).sum(-1))
    return torch.stack(outputs, 2)
"""
CONVOLUTION = """
from torch.nn.functional import conv1d, silu
def causal_conv1d_fn(x, weight, bias, activation):
    padding = weight.shape[1] - 1
    return {factor} * silu(conv1d(x, weight[:, None], bias, padding=padding, groups=len(weight))[..., : x.shape[2]])
"""
ABI = "raise ImportError('undefined symbol: _ZN3c104cuda9SetDeviceEi')"


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ({"mamba_ssm": ABI, "causal_conv1d": CONVOLUTION}, "cannot be loaded (undefined symbol: _ZN3c104cuda"),
        ({"mamba_ssm": ""}, "but causal_conv1d is missing: install both"),
        ({"mamba_ssm": "", "causal_conv1d": "version = 1"}, "cannot be loaded (cannot import name 'causal_conv1d_fn'"),
    ],
)
def test_broken_cuda_packages_are_a_failure_with_a_sentence(installed, said, packages, tmp_path):
    packages(**installed)
    examination = examine(str(tmp_path / "runs"), "cuda", names=("mamba",))
    found = next(
        each
        for each in examination
        if each.check == "mamba: mamba_ssm against ours" and each.state is not CheckState.RUNNING
    )
    assert found.state is CheckState.FAIL
    assert said in found.detail


def test_without_both_cuda_packages_the_check_is_skipped_with_a_sentence(packages):
    with pytest.raises(Skipped, match=NEITHER):
        mamba_kernels.check_mamba_kernels("cuda")
    with pytest.raises(Skipped, match="only a GPU uses mamba_ssm"):
        mamba_kernels.check_mamba_kernels("cpu")


@pytest.fixture
def pretended_gpu(monkeypatch):
    """Let the CPU use the packages for single precision, as a GPU would."""
    right = mamba_kernels.compare_with_double
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    monkeypatch.setattr(scan, "_kernels_for", lambda x: None if x.dtype == torch.float64 else scan._kernels())
    monkeypatch.setattr(mamba_kernels, "compare_with_double", lambda trials, device: right(trials, "cpu"))
    monkeypatch.setattr(mamba_kernels, "published", small)


@pytest.mark.usefixtures("pretended_gpu")
def test_cuda_packages_that_compute_the_same_pass(packages):
    packages(mamba_ssm="", causal_conv1d=CONVOLUTION.format(factor=1))
    assert mamba_kernels.check_mamba_kernels("cuda").startswith("within ")


@pytest.mark.usefixtures("pretended_gpu")
@pytest.mark.parametrize(
    ("convolution", "said"),
    [
        (CONVOLUTION.format(factor=1.01), "differs by .* from double precision .*: install both"),
        (CONVOLUTION.format(factor="missing"), "NameError: name 'missing' is not defined.*: install both"),
    ],
)
def test_cuda_packages_that_compute_wrongly_or_not_at_all_fail(convolution, said, packages):
    packages(mamba_ssm="", causal_conv1d=convolution)
    with pytest.raises(Failed, match=said):
        mamba_kernels.check_mamba_kernels("cuda")
