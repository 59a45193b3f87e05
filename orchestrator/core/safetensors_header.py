"""The header of a safetensors file: eight bytes with its length, then JSON. Reading it needs no torch."""

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from orch.core.reading import parse_json
from orch.core.shape import checked

LENGTH_BYTES = 8
MOST_BYTES = 100_000_000
"""The format allows no longer header."""


class _Header(TypedDict):
    __metadata__: NotRequired[dict[str, str]]


def orch_header(data: bytes) -> dict[str, Any]:
    """Return what orch wrote into the header that these bytes begin with, or raise `ValueError` if it is no header."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    header = checked(parse_json(data[LENGTH_BYTES:end]), _Header)
    return dict(checked(parse_json(header.get("__metadata__", {}).get("orch", "{}")), dict[str, Any]))


def read_orch_header(path: Path) -> dict[str, Any]:
    """Return what orch wrote into the header of a file; empty if the file is not orch's."""
    try:
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            length = int.from_bytes(start, "little")
            return orch_header(start + file.read(length)) if length <= MOST_BYTES else {}
    except (OSError, ValueError, AttributeError):
        return {}
