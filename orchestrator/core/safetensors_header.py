"""The header of a safetensors file: eight bytes with its length, then JSON. Reading it needs no torch."""

import json
from pathlib import Path
from typing import Any

LENGTH_BYTES = 8
MOST_BYTES = 100_000_000
"""The format allows no longer header."""


def orch_header(data: bytes) -> dict[str, Any]:
    """Return what orch wrote into the header that these bytes begin with, or raise `ValueError` if it is no header."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    header = json.loads(data[LENGTH_BYTES:end])
    if not isinstance(header, dict):
        raise ValueError("the header is no JSON object")
    found: dict[str, Any] = json.loads(header.get("__metadata__", {}).get("orch", "{}"))
    return found


def read_orch_header(path: Path) -> dict[str, Any]:
    """Return what orch wrote into the header of a file; empty if the file is not orch's."""
    try:
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            length = int.from_bytes(start, "little")
            return orch_header(start + file.read(length)) if length <= MOST_BYTES else {}
    except (OSError, ValueError, AttributeError):
        return {}
