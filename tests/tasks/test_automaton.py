"""Automata of one's own: what a table or a pattern means, what identifies it, and how bad ones are refused."""

import itertools
import json
import random
import re

import pytest

import orch
from orch.core.errors import InvalidSettings
from orch.core.settings import from_dict, to_dict
from orch.sweeps.trial import Trial, make_trial
from orch.tasks.automaton import Automaton
from orch.tasks.notation.automaton_file import MOST_BYTES, parse_table
from orch.tasks.notation.moore_machine import canonical_machine
from orch.tasks.notation.regular_expression import compile_pattern

TURNSTILE = "state,coin,push\nlocked,open,locked\nopen,open,locked\n"


def answer(task, words):
    number = {task.spell(symbol): symbol for symbol in range(task.num_symbols)}
    return task.unread[task.fold([number[word] for word in words]) - task.num_readable]


def test_a_table_with_names_is_followed_and_its_names_are_kept(tmp_path):
    (tmp_path / "turnstile.csv").write_text(TURNSTILE)
    task = Automaton(table=str(tmp_path / "turnstile.csv"))
    assert [answer(task, words.split()) for words in ("coin", "coin push", "push coin coin")] == [
        "open",
        "locked",
        "open",
    ]
    assert task.table == '{"next":[[1,0],[1,0]]}'
    assert task.summary.startswith("turnstile #")
    assert task.problems() == []


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n1,0\n",
        "a,b\n0,1\n1,0\n",
        "state,a,b\nx,x,y\ny,y,x\n",
        ",a,b\n x , x , y \n\ny,y,x\n",
        "\ufeffstate,a,b\r\nx,x,y\r\ny,y,x\r\n",
        "state,a,b,output\nx,x,y,even\ny,y,x,odd\n",
        "state,a,b,accepting\nx,x,y,yes\ny,y,x,no\n",
        '{"next": [[0, 1], [1, 0]]}',
        '{"next": [["x", "y"], ["y", "x"]], "states": ["x", "y"], "symbols": ["a", "b"]}',
        '{"next": {"y": {"a": "y", "b": "x"}, "x": {"a": "x", "b": "y"}}, "initial": "x"}',
        '{"next": [[0, 1], [1, 0]], "accepting": [1]}',
        '{"next": {"x": {"a": "x", "b": "y"}, "y": {"a": "y", "b": "x"}}, "output": {"x": "even", "y": "odd"}}',
    ],
)
def test_every_way_to_write_parity_is_one_task(tmp_path, text):
    path = tmp_path / f"parity{'.json' if text.startswith('{') else '.csv'}"
    path.write_text(text, encoding="utf-8")
    task = Automaton(table=str(path))
    assert task == Automaton(table="0,1\n1,0")
    assert make_trial("automaton", "rnn", table=str(path)).id == make_trial("automaton", "rnn", table="0,1\n1,0").id


def test_names_and_paths_are_no_part_of_the_identity_but_of_the_settings(tmp_path):
    (tmp_path / "one.csv").write_text(TURNSTILE)
    (tmp_path / "two.csv").write_text(TURNSTILE.replace("locked", "shut"))
    (tmp_path / "three.csv").write_text("state,coin,push\nlocked,open,locked\nopen,locked,locked\n")
    one, two, three = (
        make_trial("automaton", "rnn", table=str(tmp_path / f"{name}.csv")) for name in ("one", "two", "three")
    )
    assert (one.id, one) == (two.id, two)
    assert one.id != three.id
    assert one.task.class_names != two.task.class_names
    for path in tmp_path.iterdir():
        path.unlink()
    again = Trial.from_dict(json.loads(json.dumps(one.to_dict())))
    assert (again.id, again.task.symbol_names, again.label) == (one.id, ("coin", "push"), one.label)
    assert from_dict(Automaton, to_dict(one.task)) == one.task


def test_outputs_are_the_targets_and_states_that_no_input_tells_apart_are_merged():
    text = "state,a,b,output\np,q,r,0\nq,q,r,1\nr,q,s,2\ns,q,r,2\nunreached,p,p,9\n"
    found = parse_table(text, "t.csv")
    assert found.class_names == ("0", "1", "2")
    assert found.machine.num_states == 3, "r and s have one output and equal futures"
    assert Automaton(table=text).num_classes == 3


def test_the_canonical_machine_answers_like_the_one_it_was_made_of():
    rng = random.Random(0)
    for _ in range(300):
        num_states, num_symbols = rng.randint(1, 7), rng.randint(1, 3)
        table = [[rng.randrange(num_states) for _ in range(num_symbols)] for _ in range(num_states)]
        output = [rng.choice("xyz") for _ in range(num_states)]
        initial = rng.randrange(num_states)
        machine, originals = canonical_machine(table, output, initial)
        name = dict(zip(machine.output, (output[each] for each in originals), strict=True))
        for _ in range(30):
            state, smallest = initial, 0
            for _ in range(rng.randint(0, 12)):
                symbol = rng.randrange(num_symbols)
                state, smallest = table[state][symbol], machine.next_state[smallest][symbol]
                assert name[machine.output[smallest]] == output[state]
        order = rng.sample(range(num_states), num_states)
        renamed = [[0] * num_symbols for _ in order]
        for state, row in enumerate(table):
            renamed[order[state]] = [order[each] for each in row]
        shuffled = [output[order.index(state)] for state in range(num_states)]
        assert canonical_machine(renamed, shuffled, order[initial])[0] == machine


PATTERNS = [
    "(ab)*",
    "a|b",
    "a*b+c?",
    "[ab]c*",
    "[^a]*",
    "(a|b)*abb",
    "((a|b)(a|b))*",
    "a.c",
    "(|a)b",
    "[a-c]?[b-c]+",
    "(a*)*",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_pythons_does_on_every_short_input(pattern):
    found = compile_pattern(pattern, "abc")
    machine = found.machine
    for length in range(7):
        for word in itertools.product(range(3), repeat=length):
            state = 0
            for symbol in word:
                state = machine.next_state[state][symbol]
            matches = re.fullmatch(pattern, "".join("abc"[symbol] for symbol in word)) is not None
            assert found.class_names[machine.output[state]] == ("match" if matches else "no match")


def test_a_pattern_gives_the_smallest_automaton():
    assert compile_pattern("(a|b)*abb").machine.num_states == 4
    assert compile_pattern("((a|b)(a|b))*").machine.next_state == ((1, 1), (0, 0))
    assert Automaton(pattern="a(ba)*").table == Automaton(pattern="(ab)*a").table
    assert Automaton(pattern="a*", alphabet="abc").num_symbols == 3


BAD_TABLES = {
    "state,a,b\nx,x,y\nz,z,x\n": "t.csv, row 2, column b: there is no state 'y'",
    "0,1\n1,2\n": "t.csv, row 2, column 1: there is no state '2'",
    "state,a,b\nx,x\n": "t.csv, row 2 has 2 cells, but the first row 3",
    "state,a\nx,y\nz,x\n": "t.csv, row 2, column a: there is no state 'y'",
    "state,a\nx,x\nx,x\n": "t.csv, row 3 gives the state 'x' again after row 2: give each state one row, or rename one",
    "state;a;b\nx;x;y\ny;y;x\n": "t.csv has semicolons between its cells: separate them by commas",
    "state,a,a\nx,x,y\ny,x,y\n": "t.csv names the symbol 'a' twice",
    "state,a,accepting\nx,y,maybe\ny,x,no\n": "t.csv, row 2, column accepting: 'maybe' is neither yes nor no",
    "state,a,output\nx,y,\ny,x,1\n": "t.csv, row 2, column output is empty",
    "state,a,b\n": "t.csv has a header and no states",
    "": "t.csv is empty",
    "state\nx\n": "no symbols",
    "state,a\nx,x\n": "leaves nothing to track",
    'a,"b\n': "t.csv is not valid CSV",
    "{": "t.csv cannot be used (it is not valid JSON",
    "[" * 100_000: "t.csv cannot be used (it is nested more than 64 deep)",
    "[1]": "t.csv has no table",
    '{"next": []}': "t.csv has no table",
    '{"next": [[0, 1], [1]]}': "the rows are not lists of one length",
    '{"next": [[0, 1], [1, true]]}': "t.csv, state 1, symbol 1: there is no state 'True'",
    '{"next": [[0, -1], [1, 0]]}': "t.csv, state 0, symbol 1: there is no state '-1'",
    '{"next": {"x": {"a": "x"}, "y": {"b": "x"}}}': "the states do not have the same symbols",
    '{"next": [[0, 1], [1, 0]], "acepting": [0]}': "did you mean 'accepting'?",
    '{"next": [[0, 1], [1, 0]], "output": [1]}': "output is not a list of 2 names",
    '{"next": [[0, 1], [1, 0]], "output": [1, 2], "accepting": [0]}': "give one of them",
    "\n".join(["0"] * 300): "t.csv has 300 states and 1 symbols: use at most 256 states",
    "\n".join([",".join(["0"] * 200)] * 200): "10,000 entries",
    "state,a\nx,\x1b[31m\n\x1b[31m,x": "t.csv has a control character in the name '\\x1b[31m'",
    f"state,a\nx,{'y' * 50}\n{'y' * 50},x": "use 40",
    "state,a\n" + "\n".join(f"{n},nowhere" for n in range(200)): "there are: 0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9",
    "0" * (MOST_BYTES + 1): "use a table of at most 1,000,000",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_TABLES.items(), ids=range(len(BAD_TABLES)))
def test_a_bad_table_gets_one_sentence_that_names_the_place(text, message):
    with pytest.raises(InvalidSettings) as error:
        parse_table(text, "t.csv")
    assert message in str(error.value)
    assert len(error.value.problems) == 1
    assert len(str(error.value)) < 500


def test_files_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "huge.csv").write_text("0" * (MOST_BYTES + 1))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.csv").mkdir()
    for name, message in {
        "huge.csv": "has 1,000,001 bytes: use a table of at most 1,000,000",
        "binary.csv": "cannot be read as text",
        "folder.csv": "there is no file",
        "absent.json": "there is no file",
        "table.txt": "is no table: name a file that ends in .csv or .json",
    }.items():
        with pytest.raises(InvalidSettings, match=message):
            Automaton(table=str(tmp_path / name))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(ab", "character 4: a bracket is not closed"),
        ("ab)", "character 3: ) closes no bracket"),
        ("*a", "character 1: there is nothing before *"),
        ("[ab", "a class is not closed"),
        ("a{3}", "counts in braces are not possible"),
        ("a]", "] closes no class"),
        ("a*", "matches everything or nothing"),
        ("a" * 201, "use 1 to 200"),
        ("(" * 40 + "a" + ")" * 40, "nested too deeply"),
        ("(a|b)*a" + "(a|b)" * 20, "needs more than 4096 states"),
        ("(a|b)*a" + "(a|b)" * 9, "needs 1024 states: use one of at most 256"),
    ],
)
def test_a_bad_pattern_gets_one_sentence(pattern, message):
    with pytest.raises(InvalidSettings) as error:
        Automaton(pattern=pattern)
    assert message in str(error.value)
    assert len(error.value.problems) == 1


def test_only_one_of_a_table_and_a_pattern_can_be_given():
    with pytest.raises(InvalidSettings, match="give one of them"):
        Automaton(table="0,1\n1,0", pattern="(ab)*")
    with pytest.raises(InvalidSettings, match="give one of them"):
        orch.automaton("t.csv", pattern="(ab)*")
    with pytest.raises(InvalidSettings, match="--pattern too"):
        Automaton(alphabet="ab")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (r"\d", r"\\d is no shorthand here"),
        ("^ab", "leave \\^ out"),
        ("ab$", r"leave \$ out"),
        ("(?:a|b)c", r"\(\? begins no group here"),
        ("[b-a]", "the range b-a is empty: write a-b"),
    ],
)
def test_what_other_dialects_mean_is_refused_and_not_read_as_symbols(pattern, problem):
    with pytest.raises(InvalidSettings, match=problem):
        make_trial("automaton", "rnn", pattern=pattern)
