"""Ways in which a file of a store can be damaged."""

from pathlib import Path


def without_checksum(part: Path) -> Path:
    """Rename a part as those from before there were checksums are named, and return its new path."""
    return part.rename(part.with_name(f"{part.name.rpartition('-')[0]}.parquet"))


def flip_a_byte_of_the_data(data: bytes) -> bytes:
    place = data.index(b"modular_addition")
    return data[:place] + b"M" + data[place + 1 :]


DAMAGE = {
    "empty": lambda data: b"",
    "garbage": lambda data: b"not parquet at all",
    "cut short": lambda data: data[: len(data) // 2],
    "footer cut off": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "one byte of data changed": flip_a_byte_of_the_data,
}
