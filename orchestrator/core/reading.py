"""Reading what comes from outside: files of users, records of a store, answers of other programs.

Whatever this program did not just write itself is read with these functions. They refuse what is too large, too deeply
nested or no file at all, before it costs time or memory, and raise `Refused` with the reason. The caller knows what the
file is for, and adds its name and the remedy. `core.shape` then checks that the values are those that a reader expects.
"""

import contextlib
import itertools
import json
import math
import os
import re
import stat
from typing import Any

TEXT_BYTES = 16 << 20
"""Largest file of a user that is read as text, such as a sweep."""
LAUNCHER_BYTES = 256 << 10
"""Largest launcher file; those that come with orch take a fiftieth of it."""
RECORD_BYTES = 256 << 20
"""Largest record of a store, such as the list of a sweep's trials; a million trials take an eighth of it."""
MOST_DEPTH = 64
"""How deep lists and settings may be nested in each other."""
MOST_VALUES = 100_000
"""Most values of a launcher file, where aliases are expanded."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF_BYTES = re.compile(_HALF.pattern.encode())
"""A half of a character as JSON spells it. Two halves that belong together are a character."""
LARGEST_INTEGER = 2**63 - 1
"""Largest whole number, as in the tables of a store."""


class Refused(ValueError):
    """Raised for content that cannot be used. The message is the reason, to stand in parentheses in a sentence."""


def read_bytes(path: str | os.PathLike[str], most: int = TEXT_BYTES) -> bytes:
    """Return the contents of a regular file of at most so many bytes.

    Nothing is waited for: a pipe or a device is refused, and so is a file that grows while it is read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Refused("it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a regular file")
        check_size(found.st_size, most)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(found.st_size + 1)  # not most + 1, for which Python would first find room
        if len(data) > found.st_size:
            raise Refused("it grows while it is read")
        return data
    finally:
        os.close(descriptor)


def read_text(path: str | os.PathLike[str], most: int = TEXT_BYTES) -> str:
    """Return the text of a regular file in UTF-8, with or without a byte-order mark."""
    try:
        return read_bytes(path, most).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Refused(f"it is not text in UTF-8: byte {error.start:,} is 0x{error.object[error.start]:02x}") from None


def check_size(num_bytes: int, most: int) -> None:
    """Raise `Refused` for content of more bytes than are read."""
    if num_bytes > most:
        raise Refused(f"it has {num_bytes:,} bytes, and at most {most:,} are read")


def parse_json(data: bytes | str, most: int = RECORD_BYTES) -> Any:
    """Return the value of a JSON document that is not too large and not too deeply nested.

    Halves of characters, which JSON can spell and no text can have, are question marks.
    """
    check_size(len(data), most)
    try:
        value = json.loads(data)
        if (_HALF_BYTES if isinstance(data, bytes) else _HALF).search(data):  # type: ignore[arg-type]
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise Refused(f"it is nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:
        raise Refused(f"it is not valid JSON: {error}") from None
    check_depth(value)
    return value


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document of plain values, and of not too many where its aliases are expanded."""
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_nodes(node)  # before they become values, because merging them (`<<`) expands them
        value = loader.construct_document(node)
    except RecursionError:
        raise Refused(f"it is nested more than {MOST_DEPTH} deep") from None
    except yaml.YAMLError as error:
        raise Refused(f"it is not YAML: {' '.join(str(error).split())}") from None
    except Refused:
        raise
    except (ValueError, OverflowError) as error:  # a date that does not exist
        raise Refused(f"it has a value that does not exist: {error}") from None
    check_plain(value)
    return value


def _check_nodes(node: Any) -> None:
    left = [(node, 0)]
    for count in itertools.count():
        if not left:
            return
        each, depth = left.pop()
        if depth > MOST_DEPTH:
            raise Refused(f"it is nested more than {MOST_DEPTH} deep")
        if count > MOST_VALUES:
            raise Refused(f"it has more than {MOST_VALUES:,} values")
        if isinstance(each.value, list):
            inner = (part for pair in each.value for part in (pair if isinstance(pair, tuple) else (pair,)))
            left += [(part, depth + 1) for part in inner]


def check_depth(value: Any, left: int = MOST_DEPTH) -> None:
    """Raise `Refused` for lists and dictionaries that are nested too deeply, or contain themselves."""
    if left < 0:
        raise Refused(f"it is nested more than {MOST_DEPTH} deep")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(each, (dict, list)):
            check_depth(each, left - 1)


def check_plain(value: Any, most: int = MOST_VALUES) -> None:
    """Raise `Refused` unless a value consists of what JSON can express, and of at most so many values.

    A value counts wherever it occurs, so that aliases of aliases cannot expand to billions.
    """
    check_depth(value)
    left: list[tuple[tuple[str, ...], Any]] = [(("it",), value)]
    count = 0
    while left:
        place, each = left.pop()
        count += 1
        if count > most:
            raise Refused(f"it has more than {most:,} values")
        if isinstance(each, dict):
            for key, inner in each.items():
                if not isinstance(key, str):
                    raise Refused(f"{named(*place)} has the key {shown(key)}, which is not a text: put it in quotes")
                left.append(((*place, key), inner))
        elif isinstance(each, list):
            left += [((*place, f"{number}"), inner) for number, inner in enumerate(each, 1)]
        elif isinstance(each, float) and not math.isfinite(each):
            raise Refused(f"{named(*place)} is {each}, which is not a number that can be used")
        elif isinstance(each, int) and abs(each) > LARGEST_INTEGER:
            raise Refused(f"{named(*place)} is too large a number")
        elif each is not None and not isinstance(each, (str, int, float)):
            raise Refused(f"{named(*place)} is a {type(each).__name__}: put it in quotes if it is meant as a text")


def named(*place: str) -> str:
    """Return the name of a value by the keys that lead to it.

    >>> named("it"), named("it", "auth", "ssh_user")
    ('it', 'auth.ssh_user')
    """
    return ".".join(place[1:]) or place[0]


def shown(value: Any) -> str:
    """Return the beginning of a value, for a message.

    >>> shown("a" * 100), shown([1, 2])
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…", '[1, 2]')
    """
    text = ""
    with contextlib.suppress(RecursionError, ValueError):  # a number of five thousand digits has no text
        text = repr(value[:100] if isinstance(value, (str, list)) else value)
    return text if len(text) <= 40 else f"{text[:40]}…"
