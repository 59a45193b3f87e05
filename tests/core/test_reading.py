"""Files and documents from outside are read within limits, and refused with a reason beyond them."""

import json
import os
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from orch.core.reading import MOST_DEPTH, Refused, parse_json, parse_yaml, read_bytes, read_text
from orch.core.shape import AnyNumber, Count, Name, ProcessId, Seconds, checked, problems


def test_a_text_is_read_with_any_line_ends_and_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(path) == "one\ntwo\nthree\n"


def test_only_regular_files_of_a_size_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x" * 11)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    assert read_bytes(tmp_path / "long", 11) == b"x" * 11
    for name, reason in {
        "pipe": "it is not a regular file",
        "long": "it has 11 bytes, and at most 10 are read",
        "sparse": "it has 10,737,418,240 bytes, and at most 10 are read",
        "": "it is a folder",
    }.items():
        with pytest.raises(Refused, match=reason):
            read_bytes(tmp_path / name, 10)
    with pytest.raises(Refused, match="it is not a regular file"):
        read_bytes("/dev/zero")
    (tmp_path / "long").write_bytes(b"ab\xff")
    with pytest.raises(Refused, match="it is not text in UTF-8: byte 2 is 0xff"):
        read_text(tmp_path / "long")


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "{": "it is not valid JSON",
        "[" * 100_000: f"it is nested more than {MOST_DEPTH} deep",
        "[" * 70 + "]" * 70: f"it is nested more than {MOST_DEPTH} deep",
        "9" * 5000: "it is not valid JSON",
        "\ud800": "it is not valid JSON",
    }.items(),
)
def test_json_that_cannot_be_used_is_refused(text, reason):
    with pytest.raises(Refused, match=reason):
        parse_json(text)


def test_halves_of_characters_are_question_marks():
    assert parse_json(rb'{"\ud800": ["a\uDFFFb", "\ud83d\ude00"]}') == {"?": ["a?b", "\U0001f600"]}
    assert parse_json(r'"\ud800"') == "?"


def laughs(link: str, first: str) -> str:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {link.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 30)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        laughs("[{}]", "[x, x]"): "it has more than 100,000 values",
        laughs("{{<<: [{}]}}", "{x: 1}"): "it has more than 100,000 values",
        "a: &a [*a]": f"it is nested more than {MOST_DEPTH} deep",
        "[" * 5000: f"it is nested more than {MOST_DEPTH} deep",
        "a: {b: 2026-01-01}": "a.b is a date: put it in quotes if it is meant as a text",
        "a: 2026-13-45": "it has a value that does not exist",
        "a: .nan": "a is nan, which is not a number that can be used",
        "1: x": "it has the key 1, which is not a text",
        "a: !!python/object:os.system x": "it is not YAML",
        "a: [1, 99999999999999999999]": "a.2 is too large a number",
    }.items(),
)
def test_yaml_that_is_more_than_plain_values_is_refused(text, reason):
    with pytest.raises(Refused, match=reason):
        parse_yaml(text)


def test_plain_yaml_is_read():
    assert parse_yaml("a: [1, 2.5, yes, null, text]\nb: &b {c: d}\ne: *b") == {
        "a": [1, 2.5, True, None, "text"],
        "b": {"c": "d"},
        "e": {"c": "d"},
    }
    assert parse_yaml("") is None


class Inner(TypedDict):
    kind: Literal["one", "two"]
    id: Name


class Outer(TypedDict):
    count: Count
    share: float
    loss: AnyNumber
    names: list[str]
    seconds: dict[str, Seconds]
    pair: tuple[str, int]
    inner: NotRequired[Inner | None]
    anything: NotRequired[Any]
    process: NotRequired[ProcessId]


RIGHT = {"count": 1, "share": 1, "loss": float("nan"), "names": ["a"], "seconds": {"a": 2.5}, "pair": ["x", 1]}


@pytest.mark.parametrize(
    "more", [{}, {"inner": None}, {"inner": {"kind": "one", "id": "a-1"}}, {"later": 5}, {"anything": [[]]}]
)
def test_values_of_the_declared_shape_are_taken_as_they_are(more):
    values = RIGHT | more
    assert checked(values, Outer) is values


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"count": 0}, "count is 0, and not a number from 1"),
        ({"count": True}, "count is True, and not a number from 1"),
        ({"count": 2**63}, "count is 9223372036854775808, and not a number from 1"),
        ({"share": "1"}, "share is '1', and not a number"),
        ({"share": float("inf")}, "share is inf, and not a number"),
        ({"share": 10**400}, "share is 1000.*, and not a number"),
        ({"loss": 10**400}, "loss is 1000.*, and not a number"),
        ({"loss": True}, "loss is True, and not a number"),
        ({"names": ["a", 3]}, "names.2 is 3, and not a text"),
        ({"names": {}}, "names is {}, and not a list"),
        ({"seconds": {"a": -1}}, "seconds.a is -1, and not a number of seconds"),
        ({"pair": ["x"]}, r"pair is \['x'\], and not a list of 2"),
        ({"inner": {"kind": "three", "id": "a"}}, "inner.kind is 'three', and not 'one' or 'two'"),
        ({"inner": {"kind": "one", "id": "../../x"}}, "inner.id is '../../x', and not a name"),
        ({"inner": {"kind": "one"}}, "inner.id is missing"),
        ({"inner": 5}, "inner is 5, and not a dictionary"),
        ({"process": -1}, "process is -1, and not the id of a process"),
    ],
)
def test_every_other_value_is_named(more, problem):
    with pytest.raises(Refused, match=problem):
        checked(RIGHT | more, Outer)


def test_all_problems_of_a_value_are_listed():
    assert len(list(problems({"count": 0, "names": [1, 2]}, Outer))) == 7
    assert list(problems(json.loads("[]"), Outer)) == ["it is [], and not a dictionary"]
