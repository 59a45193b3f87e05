"""The address under which workers find the store, where its location contains credentials.

Ray and Tune write what they are told to files: the settings of Tune's trials, command lines, logs. A location with
credentials therefore stays in memory, in that of Ray's control store, and workers are told only where it is.
"""

import contextlib
from collections.abc import Iterator

from ray.experimental import internal_kv

from orch.core.errors import OrchError
from orch.store.credentials import redact

_PREFIX = "in-memory-of-ray:"


def address_of(location: str, driver_id: str) -> str:
    """Return the location itself if it may be written to files, and otherwise the address at which workers find it."""
    return location if redact(location) == location else f"{_PREFIX}{driver_id}"


@contextlib.contextmanager
def handed_out(address: str, location: str) -> Iterator[None]:
    """Let every worker of this Ray find the location at the address."""
    if address == location:
        yield
        return
    internal_kv._internal_kv_put(address, location)
    try:
        yield
    finally:
        internal_kv._internal_kv_del(address)


def location_at(address: str) -> str:
    """Return the location at an address, on a worker."""
    if not address.startswith(_PREFIX):
        return address
    found: bytes | None = internal_kv._internal_kv_get(address)
    if found is None:
        raise OrchError("the driver of this worker has ended, and with it the location of the store")
    return found.decode()
