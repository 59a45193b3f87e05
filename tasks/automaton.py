"""Automata of one's own: from a transition table in a CSV or JSON file, or from a regular expression."""

import functools
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from orch.core.errors import InvalidSettings
from orch.core.settings import setting
from orch.tasks.notation.automaton_file import SUFFIXES, parse_table, read_file
from orch.tasks.notation.moore_machine import MooreMachine, NamedMachine
from orch.tasks.notation.regular_expression import compile_pattern
from orch.tasks.task import FixedSizeTask


@dataclass(frozen=True, kw_only=True, slots=True)
class Automaton(FixedSizeTask):
    """q_t = delta(q_{t-1}, x_t), where q_0 is the first state; the target is the last state, or its output.

    `table` may be given as the name of a file, which is read when the task is made. What identifies the task is the
    smallest machine with the same outputs, with its states numbered in the order in which inputs reach them: neither
    the file's name nor the names and the order of its states matter. With a `pattern`, the target is whether the whole
    input matches it. Targets have tokens of their own.

    >>> task = Automaton(pattern="(ab)*")
    >>> [task.unread[task.fold(symbols) - task.num_readable] for symbols in ([0, 1, 0, 1], [0, 1, 1])]
    ['match', 'no match']
    >>> Automaton(pattern="(ab)*") == Automaton(pattern="(ab)*(ab)?")
    True
    >>> Automaton(table='{"next": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}}}').table
    '{"next":[[0,1],[1,0]]}'
    """

    name = "automaton"
    revision = 1
    title = "Automaton"
    example_settings = MappingProxyType({"table": '{"next":[[0,1],[1,2],[2,0]]}'})

    table: str = setting("", "transition table: the name of a CSV or JSON file, or JSON")
    pattern: str = setting("", "regular expression, in place of a table", identity=False)
    alphabet: str = setting("", "symbols of the pattern, if not only those that it names", identity=False)
    called: str = setting("", "name in tables and figures: that of the file, or the pattern", identity=False)
    symbol_names: tuple[str, ...] = setting((), "names of the automaton's symbols", identity=False)
    class_names: tuple[str, ...] = setting((), "names of the automaton's states or outputs", identity=False)

    def __post_init__(self) -> None:
        if self.pattern:
            found = compile_pattern(self.pattern, self.alphabet)
            if self.table not in ("", found.machine.to_text()):
                raise InvalidSettings(["--table and --pattern both describe an automaton: give one of them"])
            self._keep(found, self.pattern)
        elif self.alphabet:
            raise InvalidSettings(["--alphabet has the symbols of a pattern: give --pattern too, or leave it out"])
        elif not self.table:
            remedy = "give --table FILE.csv or --pattern '(ab)*', or in Python orch.automaton(…)"
            raise InvalidSettings([f"task automaton has no table and no pattern: {remedy}"])
        elif self.table.lower().endswith(SUFFIXES):
            path = Path(self.table)
            self._keep(parse_table(read_file(path), path.name), path.stem)
        elif "\n" in self.table or "{" in self.table:
            self._keep(_read_text(self.table), "")
        else:
            raise InvalidSettings([f"table {self.table!r} is no table: name a file that ends in .csv or .json"])
        FixedSizeTask.__post_init__(self)

    @property
    def own_name(self) -> str:
        return self.called

    def _keep(self, found: NamedMachine, called: str) -> None:
        """Set the canonical table, and the names that were not given."""
        values = {"called": called, "symbol_names": found.symbol_names, "class_names": found.class_names}
        object.__setattr__(self, "table", found.machine.to_text())
        for name, value in values.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    @property
    def moore_machine(self) -> MooreMachine:
        """The states, numbered, with their next states and outputs."""
        return _read_text(self.table).machine

    @property
    def summary(self) -> str:
        """What the automaton is called, and a few digits that tell it from others of that name."""
        digits = hashlib.sha256(self.table.encode()).hexdigest()[:4]
        return f"{self.called} #{digits}".lstrip()

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(self.moore_machine.num_symbols),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return self.moore_machine.next_state[state][symbol]

    def target(self, state: int) -> int:
        return self.num_readable + self.moore_machine.output[state]

    @property
    def num_classes(self) -> int:
        return max(self.moore_machine.output) + 1

    @property
    def unread(self) -> tuple[str, ...]:
        return self.class_names

    def spell(self, symbol: int) -> str:
        return self.symbol_names[symbol]

    def problems(self) -> list[str]:
        found = FixedSizeTask.problems(self)
        machine = self.moore_machine
        counts = (("symbol_names", machine.num_symbols), ("class_names", self.num_classes))
        for name, count in counts:
            if len(getattr(self, name)) != count:
                found.append(f"{name} has {len(getattr(self, name))} names for {count}: leave it out, or give {count}")
        return found


def automaton(table: str | None = None, *, pattern: str = "", alphabet: str = "") -> Automaton:
    """Make a task from a table in a CSV or JSON file, or from a regular expression.

    A file is looked for beside the file that calls this, or in the current folder from a notebook. A sweep file takes
    it along to workers and into the store.

    >>> automaton(pattern="a(a|b)*").summary
    'a(a|b)* #057f'
    """
    if table is None:
        return Automaton(pattern=pattern, alphabet=alphabet)
    if pattern:
        raise InvalidSettings(["a table and a pattern both describe an automaton: give one of them"])
    if not table.lower().endswith(SUFFIXES):
        return Automaton(table=table)
    caller = sys._getframe(1).f_globals
    path = Path(caller.get("__file__", "")).parent / table
    travelling = getattr(caller.get("__loader__"), "data_files", None)
    # The code of a sweep runs without its folder; its loader has the tables that were beside it.
    if travelling is not None and not Path(table).is_absolute() and str(path) not in travelling:
        remedy = 'write its name out, as in orch.automaton("x.csv")'
        raise InvalidSettings([f"{table} does not travel with the sweep: {remedy}"])
    text = travelling[str(path)] if travelling and str(path) in travelling else read_file(path)
    found = parse_table(text, path.name)
    return Automaton(
        table=found.machine.to_text(),
        called=path.stem,
        symbol_names=found.symbol_names,
        class_names=found.class_names,
    )


@functools.lru_cache(maxsize=256)
def _read_text(text: str) -> NamedMachine:
    return parse_table(text, "table")
