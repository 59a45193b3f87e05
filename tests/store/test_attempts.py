"""Rows of the table of attempts, which drivers and workers make in the same way."""

import os

import pytest

from orch.running.failures import Failure, describe
from orch.store import SCHEMAS, Outcome
from orch.store.attempts import Attempt

ATTEMPT = Attempt(attempt_id="a", trial_id="t", driver_id="d", device="cpu")


def failure_of(error):
    try:
        raise error
    except ValueError as raised:
        return describe(raised)


@pytest.mark.parametrize("by_driver", [True, False])
def test_driver_and_worker_both_record_the_class_of_the_error(by_driver):
    failure = failure_of(ValueError("size 12"))
    row = ATTEMPT.end_row(failure.outcome, 7, failure.error, by_driver=by_driver)
    assert row["error_type"] == "ValueError"
    assert row["error_signature"].startswith("ValueError in test_attempts.py:failure_of: size #")
    assert (row["event"], row["outcome"], row["step"], row["error_message"]) == ("end", "failed", 7, "size 12")
    assert "raise error" in row["traceback"]


def test_a_lost_worker_has_no_error_type():
    failure = Failure(Outcome.LOST, "lost worker", "the worker process is gone")
    row = ATTEMPT.end_row(failure.outcome, 0, failure.error, by_driver=True)
    assert (row["error_type"], row["error_signature"]) == (None, "lost worker")


def test_a_worker_records_its_process_and_the_driver_does_not():
    for row in (ATTEMPT.start_row(), ATTEMPT.end_row(Outcome.FINISHED, 1)):
        assert (row["pid"], row["worker"]) == (os.getpid(), f"{os.uname().nodename}:{os.getpid()}")
    assert "pid" not in ATTEMPT.end_row(Outcome.LOST, 1, by_driver=True)


def test_rows_have_only_columns_of_the_table():
    failure = Failure(Outcome.LOST, "lost worker", "the worker process is gone")
    for row in (ATTEMPT.start_row(), ATTEMPT.end_row(Outcome.LOST, None, failure.error)):
        assert row.keys() <= set(SCHEMAS["attempts"].names)
