"""The least memory of a trial: what cannot fit is refused with the amount, before anything starts."""

import pytest

from orch.core.errors import InvalidSettings
from orch.sweeps import memory
from orch.sweeps.catalogue import BUILT_IN
from orch.sweeps.expansion import expand
from orch.sweeps.memory import available_bytes, check_memory, least_bytes
from orch.sweeps.scales import PAPER
from orch.sweeps.selection import Results
from orch.sweeps.trial import make_trial
from tests.command_line import orch

TRIAL = ("--model", "bilinear", "--task", "modular_addition")


@pytest.mark.parametrize(
    ("setting", "value", "amount", "cause", "remedy"),
    [
        ("width", 100_000, "16 PB", "1,000,000,001,500,007 parameters", "a smaller width"),
        ("test-length", 1_000_000_000, "16.4 TB", "1,024 test samples of 1,000,000,000 inputs", "lower test_length"),
        ("curve-lengths", 1_000_000_000, "16.4 TB", "1,024 test samples", "lower test_length, curve_lengths"),
        ("batch-size", 1_000_000_000, "TB", "training batches of 1,000,000,000 samples", "lower batch_size"),
        ("validation-samples", 10**12, "TB", "1,000,000,000,000 validation samples", "lower validation_samples"),
    ],
)
def test_train_says_what_memory_a_setting_would_take(setting, value, amount, cause, remedy):
    said = orch("train", *TRIAL, f"--{setting}", value, expect=2).stderr
    assert len(said.splitlines()) == 1
    assert said.startswith("error: bilinear on modular_addition modulo 5 would take at least ")
    assert amount in said
    assert f"mostly for {cause}" in said
    assert remedy in said


def test_a_search_is_refused_for_its_largest_point(tmp_path):
    said = orch("search", *TRIAL, "--vary", "width=16,100000", "--store", tmp_path / "runs", expect=2).stderr
    assert "would take at least 16 PB of memory" in said
    assert not (tmp_path / "runs").exists()


def test_a_sweep_with_cells_that_cannot_fit_is_refused_and_lists_them(tmp_path):
    (tmp_path / "large.py").write_text(
        'TITLE = "Large"\n'
        "def cells(scale, results):\n"
        "    from orch.models.rnn.config import Config\n"
        "    for width in (16, 1_000_000, 2_000_000):\n"
        '        yield scale.cell(scale.task("dihedral", 2), Config(width=width))\n'
    )
    said = orch("sweep", tmp_path / "large.py", "--store", tmp_path / "runs", expect=2).stderr
    assert [line.split(" of memory")[0].split()[-2:] for line in said.splitlines()] == [["32", "TB"], ["128", "TB"]]
    assert not (tmp_path / "runs").exists()


def test_every_trial_of_the_paper_fits_into_two_gigabytes():
    trials = [each.trial for each in expand(["all"], PAPER, Results.none(), BUILT_IN).trials.values()]
    check_memory(trials, "cpu", available=2 * 10**9)
    with pytest.raises(InvalidSettings, match="more trials take too much memory"):
        check_memory(trials, "cpu", available=10**5)


def test_on_a_gpu_only_weights_and_samples_are_in_main_memory():
    trial = make_trial("modular_addition", "bilinear", width=512)
    assert sum(least_bytes(trial, "cuda").values()) < sum(least_bytes(trial, "cpu").values()) / 2


def test_this_machine_has_memory_left():
    free = available_bytes()
    assert free is None or free > 10**7


def test_cached_files_of_a_container_count_as_memory_that_is_left(tmp_path):
    files = {"memory.max": "1000\n", "memory.current": "900\n"}
    files["memory.stat"] = "anon 200\nfile 700\nactive_file 300\ninactive_file 350\n"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert memory._of_control_group(tmp_path) == 1000 - 900 + 650
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._of_control_group(tmp_path) is None
