"""JSON records: the files of a store that are not tables, such as what a sweep asked for. Each has a checksum.

A record is a JSON list of two: the checksum of the second, then the value. Records from before there were checksums
are JSON objects. Damage cannot turn one into the other, because a list ends in a bracket and an object in a brace.
"""

import json
from typing import Any

from orch.core.checksum import DIGITS, checksum
from orch.core.reading import parse_json

_START, _MIDDLE, _END = b'["crc32:', b'", ', b"]"
_VALUE_AT = len(_START) + DIGITS + len(_MIDDLE)


def to_record(value: Any) -> bytes:
    """Return a value as the bytes of a record."""
    return under_checksum(json.dumps(value).encode())


def under_checksum(text: bytes) -> bytes:
    """Return a text, which should be JSON, as the bytes of a record."""
    return _START + checksum([text]).encode() + _MIDDLE + text + _END


def parse_record(data: bytes) -> Any:
    """Return the value of a record. Raise `ValueError` if it is damaged."""
    return parse_json(_text(data))


def is_checked_record(data: bytes) -> bool:
    """Return whether a record is under a checksum. Raise `ValueError` if it is damaged."""
    parse_record(data)
    return not _is_object(data)


def _text(data: bytes) -> bytes:
    if _is_object(data):
        return data
    text = data[_VALUE_AT : -len(_END)]
    if data[:_VALUE_AT] != _START + checksum([text]).encode() + _MIDDLE or not data.endswith(_END):
        raise ValueError("its checksum is wrong")
    return text


def _is_object(data: bytes) -> bool:
    text = data.strip()
    return text.startswith(b"{") and text.endswith(b"}")
