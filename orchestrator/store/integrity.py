"""Reading every file of a store to see whether it is what was written: `orch verify`. Nothing is changed."""

import enum
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from orch.core.checksum import checksum
from orch.core.reading import RECORD_BYTES
from orch.core.safetensors_header import is_checked
from orch.store.damaged_files import FOLDER
from orch.store.files import Files, reaching
from orch.store.part import DamagedPart, Part, decode
from orch.store.records import is_checked_record

_BLOCK_BYTES = 1 << 20


class Condition(enum.StrEnum):
    """The condition of a file, known after all of it was read."""

    CHECKED = "under a checksum"
    UNCHECKED = "not under a checksum"
    """It is a log, or of a kind that is not known, or from before there were checksums and has no visible damage."""
    DAMAGED = "damaged"
    MISSING = "missing"
    SET_ASIDE = "set aside before"


@dataclass(frozen=True, slots=True)
class ExaminedFile:
    """A file of a store and its condition."""

    path: str
    size: int
    condition: Condition
    problem: str = ""

    @property
    def kind(self) -> str:
        """The table or the folder that it belongs to; the name of a file in the root."""
        return self.path.split("/")[0]


def examine(files: Files) -> Iterator[ExaminedFile]:
    """Yield the condition of every file, in the order of their paths. Files that disappear meanwhile are left out."""
    found = files.sizes("")
    missing = files.listed.keys() - found.keys()
    remote = files.local_path("") is None
    with ThreadPoolExecutor(32 if remote else min(8, os.cpu_count() or 1)) as pool:
        for examined in pool.map(lambda path: _examine(files, path, found.get(path)), sorted({*found, *missing})):
            if examined is not None:
                yield examined


def _examine(files: Files, path: str, size: int | None) -> ExaminedFile | None:
    if size is None:
        return ExaminedFile(path, 0, Condition.MISSING, "the list of files has it")
    if path.startswith(f"{FOLDER}/"):
        return ExaminedFile(path, size, Condition.SET_ASIDE)
    problem = ""
    for _ in range(2):  # at first it may have been received incompletely
        try:
            return ExaminedFile(path, size, _condition(files, Part(path, size)))
        except FileNotFoundError:
            return None
        except (ValueError, DamagedPart) as error:
            problem = str(error)
    return ExaminedFile(path, size, Condition.DAMAGED, problem)


def _condition(files: Files, file: Part) -> Condition:
    """Return whether a file is under a checksum. Raise `ValueError` or `DamagedPart` if it is damaged."""
    expected = file.checksum or files.listed.get(file.path)
    if expected is not None:
        if checksum(_blocks(files, file)) != expected:
            raise ValueError("its checksum is wrong")
        return Condition.CHECKED
    checked = False
    if file.path.endswith(".parquet"):
        decode(files.local_path(file.path) or files.get(file.path), None, files.location, compared=False)
    elif file.path.endswith(".safetensors"):
        checked = is_checked(_blocks(files, file))
    elif file.path.endswith(".json"):
        checked = is_checked_record(files.get(file.path, RECORD_BYTES))
    else:
        for _ in _blocks(files, file):  # whether it can be read
            pass
    return Condition.CHECKED if checked else Condition.UNCHECKED


def _blocks(files: Files, file: Part) -> Iterator[bytes]:
    """Yield the contents of a file. A large one on this machine is never as a whole in memory."""
    place = files.local_path(file.path)
    if place is None or file.size <= _BLOCK_BYTES:
        yield files.get(file.path)
        return
    with reaching(files.location, "read"), open(place, "rb", buffering=0) as opened:
        while block := opened.read(_BLOCK_BYTES):
            yield block
