"""Files of users: sweeps, tables of automata, files for queries, and what is no file."""

from hypothesis import strategies as st

from tests.hostile.option_inputs import TRAIN
from tests.hostile.plan import STORE, Plan, as_json, make_special, plan, write
from tests.hostile.values import json_texts, plain

_SWEEP = """import orch
cells = orch.grid(models={models}, tasks={tasks}, learning_rates={rates}, seeds={seeds}, width={width}, {more})
"""
_CODE = (
    "8.5", "-1", "0", "None", "'x'", "float('nan')", "float('inf')", "10**30", "[]", "{}", "()", "True", "10_000_000",
    "object()",
    "['bilinear']", "['nosuch']", "[5]", "[{'name': 5}]", "['\\x1b[8m']", "range(10**7)", "[[]]", "lambda: 1",
    "[float('nan')]", "{1: 2}",
    "['parity_check']", "[dict(name='bilinear', width=8.5)]", "[dict(name='parity_check', modulus=10**30)]",
    "'a' * 10**6", "[None]", "[0.1, '0.1']",
)  # fmt: skip
_WHOLE_PYTHON = (
    "", "\x00", "cells = 5", "def cells(scale, results): return 5", "def cells(scale, results): yield 5", "(" * 300,
    "-" * 20000 + "1",
    "raise SystemExit", "raise KeyboardInterrupt", "1/0", "import nosuch", "from . import nosuch", "from .. import x",
    "\ufeffcells = []",
    "cells = []", "def cells(): pass", "raise ValueError('\\x1b[8mowned')", "import sys; sys.exit(3)",
    "x = 9" + "9" * 5000,
    "TITLE = 5\ndef cells(scale, results): return []", "raise RecursionError",
    "import orch\nraise orch.core.errors.OrchError('\\x1b[2J')",
    "def cells(scale, results):\n    raise MemoryError",
    "def cells(scale, results):\n    while False: yield\n    return {}",
    "class A: pass\ncells = A", "cells = lambda *a: [None]", "return", "async def cells(s, r): yield 1",
    "match 5:\n  case _: cells = 1",
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> Plan:
    """Draw a file of a user: a sweep, a table of an automaton, a file for a query, or something that is no file."""
    what = draw(st.sampled_from(("grid", "python", "table", "with", "special")))
    if what in ("grid", "python"):
        code = st.sampled_from(_CODE)
        text = draw(st.sampled_from(_WHOLE_PYTHON))
        if what == "grid":
            more = draw(
                st.sampled_from(
                    (
                        "",
                        "steps=8.5",
                        "steps='x'",
                        "batch_size=10**30",
                        "nosuch=1",
                        "stop_loss=float('nan')",
                        "curve_lengths=5",
                    )
                )
            )
            wanted = {
                "models": "['bilinear']",
                "tasks": "['parity_check']",
                "rates": "1e-3",
                "seeds": "1",
                "width": "8",
            }
            for name in draw(st.lists(st.sampled_from(sorted(wanted)), min_size=1, max_size=2)):
                wanted[name] = draw(code)
            text = _SWEEP.format(more=more, **wanted)
        words = draw(
            st.sampled_from((("plan", "own.py", "--scale", "smoke"), ("models", "own.py"), ("tasks", "own.py")))
        )
        return plan(
            *words,
            about=f"sweep file {text[:150]!r}",
            prepare=lambda folder: write(folder / "own.py", text.encode(errors="surrogatepass")),
        )
    if what == "table":
        name = draw(st.sampled_from(("t.csv", "t.json")))
        table = draw(
            st.one_of(
                plain.map(as_json),
                json_texts,
                st.just('{"next": [[0, 1], [1, 0]]}'),
                st.just("state,a\nx,y\n"),
                plain.map(lambda value: as_json({"next": value})),
            )
        )
        return plan(
            "tasks",
            "automaton",
            "--table",
            name,
            about=f"table {table[:80]!r}",
            prepare=lambda folder: write(folder / name, table.encode(errors="surrogatepass")),
        )
    if what == "with":
        name = draw(st.sampled_from(("w.csv", "w.json", "w.parquet", "w.tsv", "w.csv.gz", "w\x1b[8m.csv")))
        data = draw(
            st.one_of(
                st.binary(max_size=80),
                plain.map(lambda value: as_json(value).encode()),
                st.just(b"PAR1" * 9),
                st.just(b'a,b\n1\n,,,\n"'),
            )
        )
        return plan(
            "query",
            "FROM w",
            "--with",
            f"w={name}",
            "--timeout",
            "9",
            "--memory",
            "0.2",
            about=f"{name} {data[:60]!r}",
            prepare=lambda folder: write(folder / name, data),
        )
    kind = draw(st.sampled_from(("pipe", "folder", "sparse", "dangling", "loop", "device")))
    name, words = draw(st.sampled_from((
        ("own.py", ("plan", "own.py")), ("l.yaml", ("cluster", "check", "l.yaml")), ("l.sh", ("cluster", "check",
        "l.sh")),
        ("t.csv", ("tasks", "automaton", "--table", "t.csv")), ("w.csv", ("query", "FROM w", "--with", "w=w.csv",
        "--timeout", "9")),
        ("c", (*TRAIN, "--checkpoint", "c")), ("s", (*TRAIN, "--save", "s")), ("o.csv", ("query", "SELECT 1",
        "--output", "o.csv")),
    )))  # fmt: skip
    # A result that is written to a pipe waits for a reader, as it should.
    kind = "folder" if kind in ("pipe", "device") and name in ("o.csv", "s", "c") else kind
    return plan(
        *words,
        about=f"{name} is a {kind}",
        prepare=lambda folder: make_special(folder / name, kind),
        may_change=(STORE, name),
    )
