"""Writing checkpoints in a thread of their own, so that training goes on meanwhile. Imports no Ray."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.store import Store

if TYPE_CHECKING:
    from orch.training.host_copy import Copied, HostCopy
    from orch.training.snapshot import Snapshot


@dataclass(frozen=True)
class Written:
    """A checkpoint of a pack that was written."""

    step: int
    seconds: float
    """Time from its start to its end."""
    cost: float
    """Seconds that training lost to it: the time that training waited, and the processor time of the thread."""


class CheckpointWriter:
    """Writes checkpoints of a pack to the store, one at a time. Its methods are for the thread that trains."""

    def __init__(self, store: Store):
        self._store = store
        self._memory: HostCopy | None = None
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._wanted: set[str] = set()
        """Trials that the thread has yet to write."""
        self._writing: str | None = None
        """The trial that the thread is writing."""
        self._written: Written | None = None
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, views: "Sequence[Snapshot]") -> None:
        """Begin to write trials, given as `Training.view` returns them. No other checkpoint may be in writing.

        When this returns, training may go on: what is written is a copy.
        """
        assert not self.busy
        from orch.training.host_copy import HostCopy

        started = time.monotonic()
        self._memory = self._memory or HostCopy()
        copied = self._memory.take(views)
        self._wanted = {view.trial.id for view in views}
        arguments = copied, views[0].step, started, time.monotonic() - started
        self._thread = threading.Thread(target=self._write, args=arguments, daemon=True, name="orch-checkpoints")
        self._thread.start()

    def _write(self, copied: "Copied", step: int, started: float, waited: float) -> None:
        try:
            began = time.monotonic()
            snapshots = copied.wait()
            waited += time.monotonic() - began  # on a GPU the next step waits for the copy, too
            for snapshot in snapshots:
                self._write_trial(snapshot)
            self._written = Written(step, time.monotonic() - started, waited + time.thread_time())
        except BaseException as error:
            self._error = error

    def _write_trial(self, snapshot: "Snapshot") -> None:
        from orch.training.checkpoints import snapshot_pieces

        with self._changed:
            if snapshot.trial.id not in self._wanted:
                return
            self._writing = snapshot.trial.id
        try:
            self._store.put_checkpoint(snapshot.trial.id, snapshot_pieces(snapshot))
        finally:
            with self._changed:
                self._writing = None
                self._changed.notify_all()

    def drop(self, trial_ids: Iterable[str]) -> None:
        """Leave out trials. When this returns, no checkpoint of theirs is being written or will be."""
        dropped = set(trial_ids)
        with self._changed:
            self._wanted -= dropped
            self._changed.wait_for(lambda: self._writing not in dropped)

    def cancel(self) -> None:
        """Leave out all trials that are not begun, and wait for the one that is being written.

        A checkpoint that is cut short does not count as written.
        """
        if self.busy:
            with self._changed:
                self._wanted.clear()
            self.wait()
            self._written = None

    def wait(self) -> None:
        """Wait until the checkpoint is written."""
        if self._thread is not None:
            self._thread.join()

    def collect(self) -> Written | None:
        """Return the checkpoint that was written since the last call, or raise the error that ended it.

        Each is returned or raised once.
        """
        if self.busy:
            return None
        written, self._written = self._written, None
        error, self._error = self._error, None
        if error is not None:
            raise error
        return written
