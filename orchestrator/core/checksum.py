"""The checksum of files: CRC-32, as eight hexadecimal digits. It notices every change of up to 32 neighbouring bits.

It is there against disks, cables and memory, not against people: whoever can write a file can write its checksum.
"""

import zlib
from collections.abc import Iterable

DIGITS = 8


def checksum(pieces: Iterable[bytes | memoryview]) -> str:
    """Return the checksum of the bytes of all pieces, one after the other."""
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return f"{value:0{DIGITS}x}"
