"""Tables of automata in CSV or JSON: rows are states, columns are symbols, entries are next states."""

import csv
import difflib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orch.core.errors import InvalidSettings, UnknownName
from orch.core.reading import Refused, parse_json, read_text
from orch.tasks.notation.moore_machine import NamedMachine, canonical_machine, check_size

SUFFIXES = (".csv", ".json")
MOST_BYTES = 1_000_000
LONGEST_NAME = 40
_MOST_LISTED = 12
_TRUE, _FALSE = {"1", "true", "yes"}, {"0", "false", "no", ""}
_KEYS = ("next", "symbols", "states", "initial", "output", "accepting")


def read_file(path: Path) -> str:
    """Return the text of a table's file, or raise an error that says why it cannot be one."""
    try:
        if path.suffix.lower() not in SUFFIXES:
            raise InvalidSettings([f"{path} is no table: name a file that ends in .csv or .json"])
        if not path.is_file():
            raise InvalidSettings([f"there is no file {path}: check the name and the folder"])
        if path.stat().st_size > MOST_BYTES:
            raise InvalidSettings([f"{path} has {path.stat().st_size:,} bytes: use a table of at most {MOST_BYTES:,}"])
        return read_text(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise InvalidSettings([f"{path} cannot be read as text ({error}): check the file"]) from None


def parse_table(text: str, called: str) -> NamedMachine:
    """Return the machine that the text of a CSV or JSON file describes. Errors name the place in `called`.

    >>> turnstile = parse_table("state,coin,push\\nlocked,open,locked\\nopen,open,locked\\n", "turnstile.csv")
    >>> turnstile.machine.next_state, turnstile.symbol_names, turnstile.class_names
    (((1, 0), (1, 0)), ('coin', 'push'), ('locked', 'open'))
    """
    if len(text) > MOST_BYTES:
        raise InvalidSettings([f"{called} has {len(text):,} characters: use a table of at most {MOST_BYTES:,}"])
    return (_from_json if text.lstrip()[:1] in ("{", "[") else _from_csv)(text, called)


def _named(
    states: Sequence[str],
    symbols: Sequence[str],
    next_state: Sequence[Sequence[int]],
    outputs: Sequence[str] | None,
    called: str,
    initial: int = 0,
) -> NamedMachine:
    check_size(len(states), len(symbols), called)
    told = list(states if outputs is None else outputs)
    for kind, names in (("state", states), ("symbol", symbols)):
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidSettings([f"{called} names the {kind} {twice[0]!r} twice: rename one"])
    if hidden := [name for name in (*states, *symbols, *told) if not name.isprintable()]:
        raise InvalidSettings([f"{called} has a control character in the name {hidden[0][:20]!r}: remove it"])
    if long := [name for name in (*states, *symbols, *told) if len(name) > LONGEST_NAME]:
        raise InvalidSettings(
            [f"{called} has the name {long[0][:20]}… of {len(long[0])} characters: use {LONGEST_NAME}"]
        )
    machine, originals = canonical_machine(next_state, told, initial)
    if max(machine.output) == 0:
        raise InvalidSettings([f"{called} has one class that inputs can reach, which leaves nothing to track: use two"])
    name_of = dict(zip(machine.output, (told[state] for state in originals), strict=True))
    return NamedMachine(machine, tuple(symbols), tuple(name_of[each] for each in range(len(name_of))))


def _unknown(cell: str, states: Sequence[str]) -> str:
    """Return the sentence that there is no such state, with the nearest one, or with some of many."""
    name = cell[:LONGEST_NAME]
    shown = [state[:LONGEST_NAME] for state in states]
    return str(UnknownName("state", name, difflib.get_close_matches(name, shown, n=1) or shown[:_MOST_LISTED]))


def _from_csv(text: str, called: str) -> NamedMachine:
    """Read a table whose first row may be a header, and whose first column may name the states.

    If all cells are whole numbers there is no header, and rows are numbered from 0. With a header, the first column
    names the states if it is headed `state` or not at all. A last column `output` or `accepting` gives the classes.
    """
    rows = _csv_rows(text, called)
    plain = all(cell.isdecimal() for _, row in rows for cell in row)
    header = [str(column) for column in range(len(rows[0][1]))] if plain else rows.pop(0)[1]
    if not rows:
        raise InvalidSettings([f"{called} has a header and no states: add a row of next states for each state"])
    named = header[0].lower() in ("", "state")
    kind = header[-1].lower()
    columns = range(int(named), len(header) - (kind in ("output", "accepting")))
    symbols = [header[column] for column in columns]
    if not symbols or "" in symbols:
        raise InvalidSettings([f"{called} has a column without a name, or no symbols: name each in the first row"])
    states = [row[0] if named else str(number) for number, (_, row) in enumerate(rows)]
    check_size(len(states), len(symbols), called)
    index: dict[str, int] = {}
    for number, ((line, _), state) in enumerate(zip(rows, states, strict=True)):
        if index.setdefault(state, number) != number:
            first = f"{called}, row {line} gives the state {state[:LONGEST_NAME]!r} again after row"
            raise InvalidSettings([f"{first} {rows[index[state]][0]}: give each state one row, or rename one"])
    for line, row in rows:
        for column in columns:
            if row[column] not in index:
                place = f"{called}, row {line}, column {header[column]}"
                if not row[column]:
                    raise InvalidSettings([f"{place} is empty: write the next state"])
                raise InvalidSettings([f"{place}: {_unknown(row[column], states)}"])
    next_state = [[index[row[column]] for column in columns] for _, row in rows]
    outputs = None
    if len(columns) < len(header) - int(named):
        outputs = [_output(row[-1], kind, f"{called}, row {line}, column {header[-1]}") for line, row in rows]
    return _named(states, symbols, next_state, outputs, called)


def _csv_rows(text: str, called: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty, each with its line, or raise an error if they have different lengths."""
    try:
        read = enumerate(csv.reader(io.StringIO(text), strict=True), 1)
        rows = [(line, [cell.strip() for cell in row]) for line, row in read if any(map(str.strip, row))]
    except csv.Error as error:
        raise InvalidSettings([f"{called} is not valid CSV ({error}): fix the file"]) from None
    if not rows:
        raise InvalidSettings([f"{called} is empty: write a row of next states for each state"])
    width = len(rows[0][1])
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if width == 1 and separator in rows[0][1][0]:
            raise InvalidSettings([f"{called} has {name} between its cells: separate them by commas"])
    for line, row in rows:
        if len(row) != width:
            found = f"{called}, row {line} has {len(row)} cells, but the first row {width}"
            raise InvalidSettings([f"{found}: make them equal"])
    return rows


def _output(cell: str, kind: str, place: str) -> str:
    """Return the class of a state, from a column of outputs or of what is accepted."""
    if kind == "output":
        if not cell:
            raise InvalidSettings([f"{place} is empty: write the state's output"])
        return cell
    if cell.lower() not in _TRUE | _FALSE:
        raise InvalidSettings([f"{place}: {cell!r} is neither yes nor no: write 1 or 0"])
    return "accept" if cell.lower() in _TRUE else "reject"


def _from_json(text: str, called: str) -> NamedMachine:
    """Read `{"next": …}`: rows as lists of state numbers, or by name `{"locked": {"coin": "open", …}, …}`.

    Optional are `initial`, names in `states` and `symbols`, and `output` (of each state) or `accepting` (some states).
    """
    try:
        given = parse_json(text)
    except Refused as error:
        raise InvalidSettings([f"{called} cannot be used ({error}): fix the file"]) from None
    if not isinstance(given, dict) or not isinstance(given.get("next"), (dict, list)) or not given["next"]:
        raise InvalidSettings([f'{called} has no table: write it like {{"next": [[0, 1], [1, 0]]}}'])
    if unknown := [str(UnknownName("key", key, _KEYS)) for key in given if key not in _KEYS]:
        raise InvalidSettings([f"{called}: {problem}" for problem in unknown])
    table = given["next"]
    if isinstance(table, dict):
        rows = list(table.values())
        if not all(isinstance(row, dict) and row.keys() == rows[0].keys() and row for row in rows):
            raise InvalidSettings(
                [f"{called}: the states do not have the same symbols: give each a next state for each"]
            )
        states, symbols = list(table), list(rows[0])
        rows = [[row[symbol] for symbol in symbols] for row in rows]
    else:
        rows = table
        if not all(isinstance(row, list) and row and len(row) == len(rows[0]) for row in rows):
            raise InvalidSettings(
                [f"{called}: the rows are not lists of one length: give each state a next state for each symbol"]
            )
        states = _texts(given.get("states"), len(rows), "states", called)
        symbols = _texts(given.get("symbols"), len(rows[0]), "symbols", called)
    check_size(len(states), len(symbols), called)
    index = {name: number for number, name in enumerate(states)}
    place = f"{called}, state {{}}, symbol {{}}"
    next_state = [
        [_state(cell, index, place.format(states[i], symbols[j])) for j, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    initial = _state(given["initial"], index, f"{called}, initial") if "initial" in given else 0
    return _named(states, symbols, next_state, _outputs(given, states, index, called), called, initial)


def _state(cell: Any, index: dict[str, int], place: str) -> int:
    """Return the number of a state that is given by its name or, where names are numbers, by its number."""
    name = str(cell) if isinstance(cell, (str, int)) and not isinstance(cell, bool) else None
    if name in index:
        return index[name]
    if isinstance(cell, int) and not isinstance(cell, bool) and 0 <= cell < len(index):
        return cell
    raise InvalidSettings([f"{place}: {_unknown(str(cell), list(index))}"])


def _texts(given: Any, count: int, key: str, called: str) -> list[str]:
    if given is None:
        return [str(number) for number in range(count)]
    if not isinstance(given, list) or len(given) != count or not all(isinstance(each, (str, int)) for each in given):
        raise InvalidSettings([f"{called}: {key} is not a list of {count} names: give one for each"])
    return [str(each) for each in given]


def _outputs(given: dict[str, Any], states: list[str], index: dict[str, int], called: str) -> list[str] | None:
    if "output" in given and "accepting" in given:
        raise InvalidSettings([f"{called} has output and accepting: give one of them"])
    if "accepting" in given:
        listed = given["accepting"]
        if not isinstance(listed, list):
            raise InvalidSettings([f"{called}: accepting is not a list of states: write it like [0, 2]"])
        accepting = {_state(each, index, f"{called}, accepting") for each in listed}
        return ["accept" if number in accepting else "reject" for number in range(len(states))]
    if "output" not in given:
        return None
    told = given["output"]
    if isinstance(told, dict):
        if told.keys() != set(states):
            raise InvalidSettings([f"{called}: output does not name each state once: give an output for each state"])
        told = [told[state] for state in states]
    return _texts(told, len(states), "output", called)
