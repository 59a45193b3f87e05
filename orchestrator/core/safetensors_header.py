"""The header of a safetensors file: eight bytes with its length, then JSON. Reading it needs no torch.

The header of a file that orch writes begins with the checksum of all other bytes of the file. Files from before there
were checksums are still read; `is_checked` cannot mistake a damaged header for one of theirs, because what they say
about themselves is one text named `orch`, and nothing else.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orch.core.checksum import DIGITS, checksum

LENGTH_BYTES = 8
MOST_BYTES = 100_000_000
"""The format allows no longer header."""
_METADATA = "__metadata__"
_OWN = "orch"
_BEGINNING = b'{"__metadata__":{"crc32":"'
NO_CHECKSUM = {"crc32": "0" * DIGITS}
"""The place of the checksum in the metadata of a header."""
_PLACE = LENGTH_BYTES + len(_BEGINNING)
"""Where the digits of the checksum begin."""


def with_checksum(pieces: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """Return the pieces of a safetensors file with its checksum in the header.

    The first pieces are the length and the text of the header, whose metadata begin with `NO_CHECKSUM`.
    """
    start = b"".join(pieces[:2])
    assert start[LENGTH_BYTES:_PLACE] == _BEGINNING, "the header has no place for a checksum"
    before, after = start[:_PLACE], start[_PLACE + DIGITS :]
    return [before + checksum([before, after, *pieces[2:]]).encode() + after, *pieces[2:]]


def is_checked(data: bytes) -> bool:
    """Return whether the bytes of a file that orch saved are under a checksum.

    Raise `ValueError` if they are damaged, or if orch has not saved them.
    """
    if data[LENGTH_BYTES:_PLACE] != _BEGINNING:
        metadata = _header(data).get(_METADATA)
        if not isinstance(metadata, dict) or metadata.keys() != {_OWN}:
            raise ValueError("its header is not one that orch writes")
        return False
    view = memoryview(data)
    if checksum([view[:_PLACE], view[_PLACE + DIGITS :]]).encode() != data[_PLACE : _PLACE + DIGITS]:
        raise ValueError("its checksum is wrong")
    return True


def orch_header(data: bytes) -> dict[str, Any]:
    """Return what orch wrote into the header that these bytes begin with, or raise `ValueError` if it is no header."""
    found: dict[str, Any] = json.loads(_header(data).get(_METADATA, {}).get(_OWN, "{}"))
    return found


def _header(data: bytes) -> dict[str, Any]:
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    header = json.loads(data[LENGTH_BYTES:end])
    if not isinstance(header, dict):
        raise ValueError("the header is no JSON object")
    return header


def read_orch_header(path: Path) -> dict[str, Any]:
    """Return what orch wrote into the header of a file; empty if the file is not orch's."""
    try:
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            length = int.from_bytes(start, "little")
            return orch_header(start + file.read(length)) if length <= MOST_BYTES else {}
    except (OSError, ValueError, AttributeError):
        return {}
