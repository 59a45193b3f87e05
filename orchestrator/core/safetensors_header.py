"""The header of a safetensors file: eight bytes with its length, then JSON. Reading it needs no torch.

The header of a file that orch writes begins with the checksum of all other bytes of the file. Files from before there
were checksums are still read; `is_checked` cannot mistake a damaged header for one of theirs, because what they say
about themselves is one text named `orch`, and nothing else.
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from orch.core.checksum import DIGITS, checksum
from orch.core.reading import parse_json
from orch.core.shape import checked

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


def is_checked(pieces: Iterable[bytes]) -> bool:
    """Return whether a file that orch saved, given in one or more pieces, is under a checksum.

    Raise `ValueError` if it is damaged, or if orch has not saved it.
    """
    left = iter(pieces)
    start = b""
    while len(start) < max(_PLACE, _end_of_header(start)) and (piece := next(left, b"")):
        start += piece
    if start[LENGTH_BYTES:_PLACE] != _BEGINNING:
        metadata = _header(start).get(_METADATA)
        if not isinstance(metadata, dict) or metadata.keys() != {_OWN}:
            raise ValueError("its header is not one that orch writes")
        return False
    view = memoryview(start)
    others: list[bytes | memoryview] = [view[:_PLACE], view[_PLACE + DIGITS :]]
    if checksum(itertools.chain(others, left)).encode() != start[_PLACE : _PLACE + DIGITS]:
        raise ValueError("its checksum is wrong")
    return True


def _end_of_header(start: bytes) -> int:
    """Return where the header ends of a file that begins with these bytes."""
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if length > MOST_BYTES:
        raise ValueError("its header is too long")
    return LENGTH_BYTES + length


class _Header(TypedDict):
    __metadata__: NotRequired[dict[str, str]]


def orch_header(data: bytes) -> dict[str, Any]:
    """Return what orch wrote into the header that these bytes begin with, or raise `ValueError` if it is no header."""
    header = checked(_header(data), _Header)
    return dict(checked(parse_json(header.get("__metadata__", {}).get(_OWN, "{}")), dict[str, Any]))


def _header(data: bytes) -> dict[str, Any]:
    return dict(checked(parse_json(data[LENGTH_BYTES : _end_of_header(data)]), dict[str, Any]))


def read_orch_header(path: Path) -> dict[str, Any]:
    """Return what orch wrote into the header of a file; empty if the file is not orch's."""
    try:
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            length = int.from_bytes(start, "little")
            return orch_header(start + file.read(length)) if length <= MOST_BYTES else {}
    except (OSError, ValueError, AttributeError):
        return {}
