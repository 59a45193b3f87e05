"""Values that nobody means: numbers that are none, texts that steer terminals, names that lead elsewhere."""

from typing import Any

from hypothesis import strategies as st

STEERING = (
    "\x1b]0;owned\x07",
    "\x1b[8mhidden",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\u202etxt",
    "\r\noverwritten",
    "a\x00b",
    "\x08\x08\x7f",
    "\x1bP+q\x1b\\",
)
PATHS = ("../../x", "/etc/passwd", "..", ".", "", "a/b", "~", "x" * 300, "-", "--help", "NUL", "a\nb")
NUMBER_TEXTS = (
    "nan", "inf", "-inf", "-1", "0", "1e400", "-1e-400", "8.5", "", " ", "1_000", "0x10", "٣", "1" * 400, "9" * 25,
    "9223372036854775808", "1e30", "true", "None", "1,2", "5..1", "½", "+", "--",
)  # fmt: skip
NUMBERS = (
    float("nan"), float("inf"), float("-inf"), -1, 0, 8.5, 1e308, -1e308, 2**31, 2**63, 2**64, 10**30, 10**400, True,
    -(2**63), 1e-320,
)  # fmt: skip
SURROGATES = ("\ud800", "\udcff\udcfe")

texts = st.one_of(
    st.sampled_from((*STEERING, *PATHS, *NUMBER_TEXTS)),
    st.text(max_size=12).map(lambda text: text.replace("\x00", "")),
)
json_texts = st.one_of(texts, st.sampled_from(SURROGATES))


def nested(depth: int) -> Any:
    """Return lists that are nested this deep."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


plain = st.one_of(
    json_texts,
    st.sampled_from(NUMBERS),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.just([]),
    st.just({}),
    st.sampled_from([nested(70), nested(400), [[]], [None], {"": None}, ["x", 3], {"a": {"b": "c"}}]),
    st.lists(json_texts, max_size=3),
    st.dictionaries(json_texts, st.one_of(json_texts, st.sampled_from(NUMBERS)), max_size=3),
)
arguments = texts.filter(lambda text: "\x00" not in text)
"""Words of a command line, which have no null character."""
