"""The results that ship with the package: the store named `bundled`, which can only be read.

`orch bundle` makes it. Its folder may belong to another user, or be on a read-only file system. Its list of
files has the checksum of each, with which every file is compared when it is read.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from orch.core.checksum import checksum
from orch.core.errors import DamagedFile, OrchError, StoreReadOnly
from orch.store.local_files import LocalFiles
from orch.store.records import parse_record

BUNDLED = "bundled"
FOLDER = Path(__file__).parents[1] / "analysis" / BUNDLED


MARK = "bundle.json"
"""The file that marks a folder as a bundle, which may be replaced, and lists its other files with their checksums."""


class BundledFiles(LocalFiles):
    """The files of the bundled store. Every method that would write raises `StoreReadOnly`."""

    links_allowed = True  # some installers make every file of a package a link

    def __init__(self) -> None:
        super().__init__(str(FOLDER), BUNDLED)

    @functools.cached_property
    def listed(self) -> Mapping[str, str]:
        """The checksums of all files but the list itself, by path; empty in a bundle from before there were any."""
        try:
            listed: dict[str, str] = parse_record(super().get(MARK)).get("files", {})
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError) as error:
            raise DamagedFile(f"{MARK} of the bundled results is damaged ({error}): install orch again") from None
        return listed

    def get(self, path: str) -> bytes:
        data = super().get(path)
        expected = None if path == MARK else self.listed.get(path)
        if expected is not None and checksum([data]) != expected:
            raise DamagedFile(f"{path} of the bundled results is damaged (its checksum is wrong): install orch again")
        return data

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
