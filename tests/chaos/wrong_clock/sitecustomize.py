"""A wrong clock for an interpreter that finds this file first.

`ORCH_CHAOS_CLOCK` names a file with the seconds by which it is off; without it nothing is changed. Python's `time.time`
and `datetime.now` are wrong. The monotonic clock and what is not Python stay right, because libraries in C wait until a
time of day that the kernel would not agree with.
"""

import datetime
import os
import time

_true_time, _TrueDatetime = time.time, datetime.datetime


def _off() -> int:
    try:
        with open(os.environ["ORCH_CHAOS_CLOCK"]) as file:
            return int(file.read())
    except (OSError, KeyError, ValueError):
        return 0


class _Datetime(_TrueDatetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_true_time() + _off(), tz)


if "ORCH_CHAOS_CLOCK" in os.environ:
    _Datetime.__name__ = _Datetime.__qualname__ = "datetime"
    _Datetime.__module__ = "datetime"
    time.time = lambda: _true_time() + _off()
    time.time_ns = lambda: int(time.time() * 1e9)
    datetime.datetime = _Datetime
