"""Copies of a pack in the host's memory: of one step, whatever training does next, and in the same memory each time."""

import contextlib

import pytest
import torch

from orch.training import host_copy
from orch.training.host_copy import HostCopy
from orch.training.train import Training
from tests.small import TYPICAL_MODELS, small_trial

STATES = ("parameters", "first", "second")


def tensors_of(snapshots):
    return {
        (snapshot.trial.id, kind, name): tensor
        for snapshot in snapshots
        for kind in STATES
        for name, tensor in getattr(snapshot, kind).items()
    }


def pack(model="rnn", size=2):
    training = Training([small_trial(model, init_seed=seed, data_seed=seed) for seed in range(size)])
    training.advance(stop_at=3)
    return training


def views(training):
    return [training.view(position) for position in range(len(training.members))]


def snapshots(training):
    return [training.snapshot(position) for position in range(len(training.members))]


def assert_equal(found, expected):
    assert [snapshot.step for snapshot in found] == [snapshot.step for snapshot in expected]
    found, expected = tensors_of(found), tensors_of(expected)
    assert found.keys() == expected.keys()
    for key, tensor in expected.items():
        assert torch.equal(found[key], tensor), key


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_copy_stays_as_it_was_while_training_changes_the_weights_in_place(model):
    training = pack(model)
    expected = snapshots(training)
    copied = HostCopy().take(views(training))
    training.advance(stop_at=6)
    assert_equal(copied.wait(), expected)
    now = tensors_of(views(training))
    assert any(not torch.equal(now[key], tensor) for key, tensor in tensors_of(expected).items())


def test_the_next_copy_uses_the_same_memory_and_that_of_a_trial_that_left_is_released():
    training, memory = pack(size=3), HostCopy()
    first = {key: tensor.data_ptr() for key, tensor in tensors_of(memory.take(views(training)).wait()).items()}
    training.advance(stop_at=6)
    staying = views(training)[1:]
    second = tensors_of(memory.take(staying).wait())
    assert {key: tensor.data_ptr() for key, tensor in second.items()} == {key: first[key] for key in second}
    assert memory._memory.keys() == tensors_of(staying).keys()


class LateStreams:
    """Streams of a device that is not there: what is not waited for runs as late as it can, and on real numbers."""

    def __init__(self, monkeypatch):
        self.waited_for_training = False
        self.current = self.training = Stream(self)
        self.side = Stream(self)
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: self.side)
        monkeypatch.setattr(torch.cuda, "Event", lambda: Event(self))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self.current)
        monkeypatch.setattr(torch.cuda, "stream", self._within)
        monkeypatch.setattr(host_copy, "_empty", lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype))
        streams = self

        class OnDevice(torch.Tensor):
            device = torch.device("cuda")

            @classmethod
            def __torch_function__(cls, function, types, arguments=(), options=None):
                if function is not torch.Tensor.copy_:
                    return super().__torch_function__(function, types, arguments, options)
                target, source = arguments
                streams.current.start(lambda: target.copy_(source.as_subclass(torch.Tensor)))
                return target

        self.tensor = OnDevice

    @contextlib.contextmanager
    def _within(self, stream):
        before, self.current = self.current, stream
        yield
        self.current = before

    def views(self, training):
        return [
            view.map_tensors(lambda kind, name, tensor: tensor.as_subclass(self.tensor)) for view in views(training)
        ]


class Stream:
    def __init__(self, streams):
        self._streams, self._waiting = streams, []

    def start(self, function):
        assert self is self._streams.side, "training would wait for each copy"
        assert self._streams.waited_for_training, "the last step may not be done"
        self._waiting.append(function)

    def wait_stream(self, stream):
        assert (self, stream) == (self._streams.side, self._streams.training)
        self._streams.waited_for_training = True

    def wait_event(self, event):
        event.synchronize()

    def run(self):
        while self._waiting:
            self._waiting.pop(0)()


class Event:
    def __init__(self, streams):
        self._streams = streams

    def record(self):
        self._stream = self._streams.current

    def synchronize(self):
        self._stream.run()


def test_on_a_gpu_the_copy_is_ordered_between_two_steps(monkeypatch):
    training, streams, memory = pack(), LateStreams(monkeypatch), HostCopy()
    for stop_at in (6, 9):
        expected = snapshots(training)
        copied = memory.take(streams.views(training))
        streams.waited_for_training = False
        training.advance(stop_at=stop_at)
        assert_equal(copied.wait(), expected)


def test_a_copy_that_no_step_waits_for_would_be_noticed(monkeypatch):
    monkeypatch.setattr(Stream, "wait_event", lambda stream, event: None)
    with pytest.raises(AssertionError):
        test_on_a_gpu_the_copy_is_ordered_between_two_steps(monkeypatch)
