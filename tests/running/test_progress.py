"""The progress of a run: what is printed, and the time left."""

import json

import pytest

from orch.running.display import Display
from orch.running.lease import Lease
from orch.running.progress import MOST_SHOWN, Progress, ProgressCount, time_left
from orch.running.running_trial import MOST_POINTS, RunningTrial, published_curve
from orch.running.status import read_status
from orch.store import Store
from orch.sweeps.result import CurvePoint

SUMMARY = {
    "trial_id": "a",
    "ood_accuracy": 0.5,
    "validation_accuracy": 0.9,
    "stop_reason": "budget",
    "steps_trained": 100,
}


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test can set."""
    now = [0.0]
    monkeypatch.setattr("orch.running.progress.time.monotonic", lambda: now[0])
    return now


def progress_of(total: float) -> Progress:
    found = Progress({"main": ProgressCount(total=4)}, total, ProgressCount(total=4))
    found.running(("main",), 1)
    return found


def report(progress: Progress, *trials: RunningTrial, estimate: float = 100.0) -> None:
    labels = {each.trial_id: f"lstm {each.trial_id}" for each in trials}
    progress.reported(trials, labels, dict.fromkeys(labels, estimate))


def test_control_characters_in_messages_do_not_reach_the_terminal(capsys):
    Display(Progress({}, 0.0)).say("failed: \x1b[31mred\x07")
    assert capsys.readouterr().err == "failed:  [31mred \n"


def test_a_running_trial_counts_by_its_steps_toward_the_time_left(clock):
    progress = progress_of(400.0)
    assert progress.seconds_left is None
    clock[0] = 10.0
    report(progress, RunningTrial("a", step=50, steps=100))
    assert progress.seconds_left == pytest.approx(350 / (50 / 10))
    progress.finished(("main",), "lstm", SUMMARY, 100.0)
    clock[0] = 20.0
    assert progress.seconds_left == pytest.approx(300 / (100 / 20))
    progress.failed(("main",), 100.0)
    assert progress.seconds_left == pytest.approx(200 / (100 / 20))


def test_steps_from_before_a_resume_are_done_but_say_nothing_about_the_pace(clock):
    progress = progress_of(200.0)
    clock[0] = 10.0
    report(progress, RunningTrial("a", step=90, steps=100, first_step=80))
    assert progress.seconds_left == pytest.approx(110 / (10 / 10))
    progress.finished(("main",), "lstm", SUMMARY, 100.0)
    assert progress.seconds_left == pytest.approx(100 / (20 / 10))


def test_estimates_that_are_all_wrong_by_a_factor_give_the_same_time_left():
    assert time_left(350, 50, 10) == time_left(3500, 500, 10) == 70
    assert time_left(350, 0, 10) is None


def test_a_handful_of_running_trials_is_shown_with_step_loss_and_accuracy(clock):
    progress = progress_of(400.0)
    trials = [RunningTrial(str(n), n, 100, train_loss=0.25, validation_accuracy=0.875) for n in range(MOST_SHOWN + 2)]
    report(progress, *trials)
    lines = progress.running_lines()
    assert len(lines) == MOST_SHOWN + 1
    assert lines[0] == "lstm 6: step 6 of 100, loss 0.25, accuracy 0.88"
    assert lines[-1] == "and 2 more running"
    assert RunningTrial("x", 0, 100).text == "step 0 of 100", "what was not measured is not shown as 0"
    assert lines[0] in Display(progress).as_html()


def test_the_notebook_display_escapes_what_it_shows():
    shown = Display(Progress({"<b>mine</b>": ProgressCount()}, 0.0)).as_html()
    assert "<b>" not in shown


def test_a_published_curve_is_bounded_and_keeps_its_last_point():
    points = [CurvePoint(step, 1 / step, 0.5, step / 1000, 1.0) for step in range(1, 1001)]
    for count in (0, 1, MOST_POINTS, MOST_POINTS + 1, 1000):
        curve = published_curve(points[:count])
        assert len(curve) <= MOST_POINTS
        assert [step for step, _, _ in curve[-1:]] == [point.step for point in points[count - 1 : count]]
    assert published_curve([CurvePoint(1, float("nan"), 0.5, 0.25, 1.0)]) == ((1, None, 0.25),)
    running = RunningTrial("a", 3, 100, label="lstm", curve=curve)
    assert RunningTrial.from_dict(json.loads(json.dumps(running.to_dict()))) == running
    assert RunningTrial.from_dict({"trial_id": "a", "step": 3, "steps": 100}).curve == (), "of an earlier version"


def test_status_shows_the_time_left_and_the_steps_that_the_driver_shows(tmp_path):
    store = Store.open(tmp_path / "runs")
    running = RunningTrial("abc", 30, 100, train_loss=float("nan"), validation_accuracy=0.5)
    with Lease(store, "main at laptop scale") as lease:
        assert read_status(store).seconds_left is None
        lease.counts = {"seconds_left": 660.0, "trials": [running.to_dict()]}
        lease._write()
        assert read_status(store).seconds_left == 660.0
        (driver,) = store.list_json("drivers").values()
        assert RunningTrial.from_dict(driver["counts"]["trials"][0]).text == "step 30 of 100, accuracy 0.50"


def test_before_the_first_trial_runs_the_line_says_that_workers_are_starting():
    progress = Progress({"main": ProgressCount(total=4)}, 40.0, ProgressCount(total=4))
    assert progress.line() == "0 of 4 done, 0 running, workers are starting"
    progress.running(("main",), 1)
    assert progress.line() == "0 of 4 done, 1 running", "no rate is known before a trial has finished"


def test_a_finished_trial_is_shown_with_its_accuracy_at_trained_lengths_and_at_the_test_length(clock):
    progress = progress_of(400.0)
    clock[0] = 30.0
    report(progress, RunningTrial("a", step=50, steps=100))
    progress.finished(("main",), "lstm on parity", SUMMARY, 100.0)
    assert "lstm on parity: accuracy " in progress.newest[0]
    assert ", at the test length " in progress.newest[0]
    assert "2.0 a minute" in progress.line()
