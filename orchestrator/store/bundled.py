"""The results that ship with the package: the store named `bundled`, which can only be read.

`orch bundle` makes it. Its folder may belong to another user, or be on a read-only file system.
"""

from pathlib import Path
from typing import Any, NoReturn

from orch.core.errors import OrchError, StoreReadOnly
from orch.store.local_files import LocalFiles

BUNDLED = "bundled"
FOLDER = Path(__file__).parents[1] / "analysis" / BUNDLED


class BundledFiles(LocalFiles):
    """The files of the bundled store. Every method that would write raises `StoreReadOnly`."""

    def __init__(self) -> None:
        super().__init__(str(FOLDER), BUNDLED)

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise StoreReadOnly()

    put = delete = move = sweep = _refuse


def no_results(location: str) -> OrchError:
    """Return the error for a store that does not exist. It mentions the bundled results, if there are any."""
    if location == BUNDLED:
        return OrchError("no results came with this installation of orch: run orch sweep, and name its --store")
    return OrchError(f"there are no results at {location}: check the name, or run orch sweep first{bundled_hint()}")


def bundled_hint() -> str:
    """Return the part of a message that mentions the bundled results; empty if there are none."""
    return f"; --store {BUNDLED} has those that came with orch" if BundledFiles().exists() else ""
