"""Damage to files of a store: bytes flipped, ends cut off, zeros, and files that are gone."""

import io
from collections.abc import Callable
from random import Random

import pyarrow.parquet as pq

from tests.chaos.harness import Round

Damage = Callable[[bytes, Random], bytes | None]


def flip(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1 :]


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def zeros(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes(len(data) - place)


def damage_file(round: Round, how: Damage, *, folders: tuple[str, ...] = ()) -> None:
    """Damage a file of the round's store, of any folder alike, or of one of `folders`."""
    found = [path for path in round.place.files() if not path.rsplit("/", 1)[-1].startswith(".")]
    known = {path.split("/")[0] for path in found} - {"damaged"}
    wanted = sorted(known & set(folders) if folders else known)
    if not wanted:
        return
    folder = round.random.choice(wanted)
    path = round.random.choice(sorted(each for each in found if each.split("/")[0] == folder))
    data = round.place.read(path)
    if not data:
        return
    if folder in round.may_lack and path not in round.damaged:
        rows = pq.read_table(io.BytesIO(data), columns=["attempt_id"])["attempt_id"].to_pylist()
        round.may_lack[folder] |= set(rows)
    damaged = how(data, round.random)
    if damaged is None:
        round.place.delete(path)
    else:
        round.place.write(path, damaged)
    if damaged != data:
        round.damaged[path] = damaged
    round.note(f"{getattr(how, '__name__', 'damage')}: {path}")


def remove(data: bytes, random: Random) -> None:
    return None


def damage_repeatedly(round: Round, how: Damage) -> None:
    """Damage files between runs that are killed, and while one runs."""
    for _ in range(4):
        process = round.plain(crash_at=f"any:{round.random.randint(30, 300)}")
        if round.random.random() < 0.5:
            round.pause(1.5)
            damage_file(round, how)
        round.wait(process)
        for _ in range(round.random.randint(1, 2)):
            damage_file(round, how)
