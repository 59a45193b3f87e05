"""The rule for another try after failures."""

import pytest

from orch.core.errors import StoreFull
from orch.running.failures import MOST_FAILED, MOST_LOST, MOST_OUT_OF_MEMORY, Failure, describe, worth_another_try
from orch.store import Outcome


def failures(outcome, *signatures):
    return [Failure(outcome, signature, "") for signature in signatures]


@pytest.mark.parametrize(("outcome", "most"), [(Outcome.LOST, MOST_LOST), (Outcome.OUT_OF_MEMORY, MOST_OUT_OF_MEMORY)])
def test_infrastructure_is_tried_again_so_many_times(outcome, most):
    for count in range(1, most + 1):
        assert worth_another_try(failures(outcome, *["same"] * count))
    assert not worth_another_try(failures(outcome, *["same"] * (most + 1)))


def test_an_error_that_comes_back_identical_is_not_tried_again():
    assert worth_another_try(failures(Outcome.FAILED, "a"))
    assert not worth_another_try(failures(Outcome.FAILED, "a", "a"))
    assert worth_another_try(failures(Outcome.FAILED, "a", "b"))
    assert not worth_another_try(failures(Outcome.FAILED, *"abcdefgh"[:MOST_FAILED]))


def raised_by_user_code(error):
    """Raise an error from a file of a user's code."""
    text = compile("def forward(error):\n    raise error", "/orch_user_code/0123/mine.py", "exec")
    namespace = {}
    exec(text, namespace)
    try:
        namespace["forward"](error)
    except Exception as caught:
        return describe(caught)


def test_an_error_of_a_users_own_code_is_not_tried_again():
    failure = raised_by_user_code(ValueError("shapes differ"))
    assert failure.deterministic
    assert not worth_another_try([failure])


@pytest.mark.parametrize(
    "error",
    [
        OSError("no such device"),
        StoreFull("full"),
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory: out of memory"),
    ],
)
def test_an_error_that_may_pass_is_tried_again_though_user_code_met_it(error):
    failure = raised_by_user_code(error)
    assert not failure.deterministic
    assert worth_another_try([failure])


def test_an_error_of_our_own_code_is_tried_again_once():
    assert not raised(ValueError("ours")).deterministic


def test_a_hung_trial_is_left_for_a_resume():
    assert not worth_another_try(failures(Outcome.HUNG, "hung"))


def raised(error):
    try:
        raise error
    except Exception as caught:
        return describe(caught)


def test_errors_that_differ_only_in_numbers_share_a_signature():
    one, other = raised(ValueError("size 12 at 0x7f3a")), raised(ValueError("size 99 at 0x11bc"))
    assert one.signature == other.signature
    assert "raised" in one.signature
    assert one.message == "size 12 at 0x7f3a"


def test_no_credentials_survive_in_a_signature():
    failure = raised(RuntimeError("cannot reach s3://key3:secret7@bucket/runs"))
    assert "secret" not in failure.signature + failure.message


def test_running_out_of_memory_and_a_lost_store_are_told_apart():
    assert raised(MemoryError()).outcome == Outcome.OUT_OF_MEMORY
    assert raised(StoreFull("full")).store_lost
    assert not raised(ValueError()).store_lost


def test_what_ray_says_about_a_worker_is_told_apart():
    from ray.exceptions import RayActorError

    from orch.running.ray_compat import PROCESS_DIED, KilledForMemory, failure_of

    def told(error, on_cluster=False):
        failure = failure_of(error, on_cluster)
        return failure.outcome, failure.signature, failure.blameless

    assert told(KilledForMemory("too much")) == (Outcome.OUT_OF_MEMORY, "killed for memory", False)
    assert told(RayActorError()) == (Outcome.LOST, "lost worker", False)
    assert told(RayActorError(), on_cluster=True) == (Outcome.LOST, "lost machine", True)
    assert told(RayActorError(error_msg=PROCESS_DIED), on_cluster=True) == (Outcome.LOST, "lost worker", False)
    assert told(None) == (Outcome.LOST, "lost worker", False)
    assert told(ValueError("broken"))[0] is Outcome.FAILED
