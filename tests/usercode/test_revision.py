"""The revision of user code is a hash of the syntax of what a class uses: which edits change it, and which do not."""

import ast
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orch.sweeps.expansion import expand
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from orch.usercode import UserCode, make_catalogue, name_sweeps
from orch.usercode.revision import BITS, revision
from orch.usercode.syntax import Form
from tests.usercode.revised import changed, code

EXAMPLE = Path(__file__).parents[2] / "examples"


def revisions(path):
    catalogue = make_catalogue((UserCode.read(path),))
    return catalogue.models["averaging"].revision, catalogue.tasks["last"].revision


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("my_sweep.py", "return symbol", "return state", "task"),
        ("my_sweep.py", "DEPTH = 1", "DEPTH = 2", ""),
        ("my_sweep.py", 'setting(0.5, "weight', 'setting(0.25, "weight', "model"),
        ("my_sweep.py", "flavour: str", "flavour: str | None", "model"),
        ("my_sweep.py", "return state", "return state  # why", ""),
        ("my_sweep.py", "    def target(self, state):", '    def target(self, state):\n        """Text."""', ""),
        ("my_sweep.py", "    def target(self, state):", "    def target(self, state: int) -> int:", ""),
        ("my_sweep.py", 'TITLE = "Averages on copying"\n', 'TITLE = "Averages on copying"; STEP = 2\n', ""),
        ("my_sweep.py", "TITLE =", "import torch\ntorch.manual_seed(0)\nTITLE =", "model task"),
        ("my_sweep.py", "from orch.tasks import Task", "import collections\nfrom orch.tasks import Task", ""),
        ("my_sweep.py", "scale.cell(task, Averaging(width=8))", "scale.cell(task, Averaging(width=16))", ""),
        ("my_sweep.py", "    for task in", "    # more of them\n\n    for task in", ""),
        ("my_sweep.py", "Averages on copying", "Something else", ""),
        ("my_sweep.py", '"""For tests."""', '"""For tests,\nin two lines."""', ""),
        ("my_sweep.py", "DEPTH = 1", "REPRODUCES = 'nothing'", ""),
        ("averaging.py", "mean(1)", "sum(1)", "model"),
        ("averaging.py", "0.1, generator", "0.2, generator", "model"),
        ("averaging.py", "  # padding adds nothing", "", ""),
        ("averaging.py", "import torch\n", '"""The mean."""\n\nimport torch\n', ""),
    ],
)  # fmt: skip
def test_an_edit_changes_the_revisions_of_the_classes_that_use_what_was_edited(files, file, old, new, changes):
    before = revisions(files.path)
    after = revisions(files.edit(old, new, files.folder / file))
    assert [kind for kind, a, b in zip(("model", "task"), before, after, strict=True) if a != b] == changes.split()


@pytest.mark.parametrize("style", ["line-length=40", "line-length=200", "format.quote-style='single'"])
@pytest.mark.parametrize("sweep", ["my_sweep.py", "gated_sweep.py"])
def test_a_formatter_changes_the_text_and_no_revision(files, sweep, style):
    for path in EXAMPLE.glob("gated_*.py"):
        shutil.copy(path, files.folder)

    def found():
        catalogue = make_catalogue((UserCode.read(files.folder / sweep),))
        return [part.revision for part in catalogue.user_types]

    before, texts = found(), [path.read_text() for path in sorted(files.folder.glob("*.py"))]
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "format", "--isolated", "--config", style, files.folder], check=True, capture_output=True)
    assert [path.read_text() for path in sorted(files.folder.glob("*.py"))] != texts
    assert found() == before


def test_an_edit_of_the_title_changes_the_revision_of_a_class_that_uses_it(files):
    before = revisions(files.edit("return symbol", "return len(TITLE)"))
    after = revisions(files.edit("Averages on copying", "Something else"))
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_a_revision_is_the_same_on_every_machine_and_exact_as_a_float():
    files = code("from .b import x\nclass Model:\n    '''Text.'''\n    y: int = x\n", b="x = f'{1!r:>{2}}' 'c'\n")
    assert [revision(files, [each]) for each in [("sweep.py", "Model"), ("b.py", "x")]] == [
        218077294558214,
        91451873360191,
    ]
    assert BITS <= 53


def test_a_form_does_not_depend_on_what_versions_of_python_add_to_a_tree():
    text = "@a\ndef f(x: int, *, y=None) -> str:\n    return f'{x}b{y!r}'\nclass C(f):\n    z: int = 1\n"
    tree = ast.parse(text)
    expected = Form.of(tree).text
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):  # as Python 3.12 does
            node._fields = (*dict.fromkeys((*node._fields, "type_params")),)
            node.type_params = []
        if isinstance(node, ast.JoinedStr):  # as Python 3.12 has done for some strings
            node.values = [node.values[0], ast.Constant(""), *node.values[1:], ast.Constant("")]
        for name in node._fields:  # as a tree made by hand in Python 3.13 need not have them
            if getattr(node, name, 0) is None and not isinstance(node, ast.Constant):
                delattr(node, name)
    assert Form.of(tree).text == expected


def test_folder_and_file_name_do_not_change_the_revision(files, tmp_path):
    before = revisions(files.path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "renamed.py").write_text(files.sweep.read_text().replace(".averaging", ".mean"))
    shutil.copy(files.network, tmp_path / "elsewhere" / "mean.py")
    assert revisions(tmp_path / "elsewhere" / "renamed.py") == before


def test_a_model_that_moves_to_a_separate_file_keeps_its_revision(files):
    before = revisions(files.path)
    text = files.sweep.read_text()
    start, end = text.index("@dataclass"), text.index("@dataclass", text.index("@dataclass") + 1)
    (files.folder / "model.py").write_text(text[: text.index("TITLE")] + text[start:end])
    files.sweep.write_text(text[: text.index("TITLE")] + "from .model import Averaging\n\nTITLE = 'x'\n" + text[end:])
    assert revisions(files.path) == before


def test_a_class_made_by_a_call_has_the_code_of_what_it_wraps(files):
    text = files.sweep.read_text()
    made = """

class Inner:
    size = 1


class Other:
    size = 2


def wrap(module, called):
    parts = {"name": called, "wrapped": module, "__module__": module.__module__}
    return dataclass(frozen=True, kw_only=True, slots=True)(type("Config", (Averaging,), parts))


first = wrap(Inner, "first")
second = wrap(Other, "second")
both = [first, second]
"""
    files.sweep.write_text(text + made)

    def found():
        models = make_catalogue((UserCode.read(files.path),)).models
        return [models[name].revision for name in ("first", "second", "averaging")]

    before = found()
    assert len(set(before)) == 3
    files.edit("size = 1", "size = 3")
    after = found()
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True]
    files.edit("0.1, generator", "0.2, generator", files.network)
    assert not set(found()) & set(after), "all of them use the network"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 'a' \"b\"", "x = 'ab'"),
        ("x = (1)", "x = 1"),
        ("x = 1_000", "x = 1000"),
        ("x = 0XFF", "x = 0xff"),
        ("x = 1E3", "x = 1e3"),
        ("x = u'a'", "x = 'a'"),
        ("x = f'a{1}' 'b' 'c'", "x = f'a{1}bc'"),
        ("x = [1, 2,]", "x = [1, 2]"),
        ("def x():\n    del (a, b)", "def x():\n    del a, b"),
        ("def x():\n    y: int = 1", "def x():\n    y = 1"),
        ("class x():\n    pass", "class x:\n    'Text.'"),
        ("def x():\n    'Text.'\n    pass", "def x(): pass"),
        ("async def x(a, /, *, b: int): await (a)", "async def x(a, /, *, b): await a"),
        ("a = 1\ndef x(): return a", "def x(): return a\na = 1"),
    ],
)
def test_two_ways_to_write_the_same_have_one_form(before, after):
    assert not changed(before, after, name="x")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = -1", "x = 1"),
        ("x = None", "x = ..."),
        ("x = f'{1}'", "x = '1'"),
        ("x = f'{1!r}'", "x = f'{1}'"),
        ("x = f'{1:2}'", "x = f'{1:3}'"),
        ("x = a.b", "x = a.c"),
        ("x = {**a}", "x = {None: a}"),
        ("x = a[1:]", "x = a[:1]"),
        ("def x(a, *, b=1): ...", "def x(a, b=1): ..."),
        ("def x(*, a, b=1): ...", "def x(*, a=1, b): ..."),
        ("def x(): return", "def x(): return 1"),
        ("async def x(): ...", "def x(): ..."),
        ("def x(): return __doc__", "'Text.'\ndef x():\n    'Text.'\n    return __doc__"),
        ("a = 1\nx = a\na = 2", "a = 1\na = 2\nx = a"),
    ],
)
def test_code_that_does_something_else_has_another_form(before, after):
    assert changed(before, after, name="x")


def test_swapping_two_imported_names_changes_the_revision():
    files = {"a": "def f(): return 1\n", "b": "def f(): return 2\n"}
    text = "from .a import f as one\nfrom .b import f as two\nclass Model:\n    x = one, two\n"
    swapped = text.replace(".a", ".c").replace(".b", ".a").replace(".c", ".b")
    assert changed(code(text, **files), code(swapped, **files))
    late = "class Model:\n    def f():\n        from .a import f\n    def g():\n        from .b import f\n"
    swapped = late.replace(".a", ".c").replace(".b", ".a").replace(".c", ".b")
    assert changed(code(late, **files), code(swapped, **files))


@pytest.mark.parametrize("seed", range(30))
def test_an_edit_of_any_definition_changes_exactly_its_users(seed):
    """Random definitions in two files, each a function, class or constant that uses some of the others."""
    draw = random.Random(seed)
    count = 12
    uses = {number: sorted(draw.sample(range(number), draw.randint(0, min(2, number)))) for number in range(count)}
    for number in draw.sample(range(count), 3):
        uses[number].append(draw.randrange(count))  # functions may also refer to later ones, or to themselves
    home = {number: draw.choice(["sweep", "b"]) for number in range(count)}
    kinds = {number: draw.choice(["function", "class", "late"]) for number in range(count)}

    def text(file, constants, order):
        other = {"sweep": "b", "b": "sweep"}[file]
        lines = [f"from .{other} import {', '.join(f'd{n}' for n in range(count) if home[n] == other) or 'nothing'}"]
        for number in order:
            if home[number] != file:
                continue
            names = [f"d{each}" for each in uses[number]]
            value = ", ".join([str(constants[number]), *names])
            if kinds[number] == "function":
                lines.append(f"def d{number}(x):\n    return [{value}]")
            elif kinds[number] == "class":
                lines.append(f"class d{number}:\n    def run(self):\n        return [{value}]")
            else:
                local = "".join(f"    from .{home[each]} import d{each} as e{each}\n" for each in uses[number])
                late = ", ".join([str(constants[number]), *(f"e{each}" for each in uses[number])])
                lines.append(f"def d{number}(x):\n{local}    return [{late}]")
        return "\n".join(lines)

    def all_revisions(constants, order):
        files = code(text("sweep", constants, order), b=text("b", constants, order))
        return [revision(files, [(f"{home[number]}.py", f"d{number}")]) for number in range(count)]

    constants = [10 * number for number in range(count)]
    before = all_revisions(constants, range(count))
    assert all_revisions(constants, draw.sample(range(count), count)) == before, "their order does not matter"
    edited = draw.randrange(count)
    after = all_revisions([*constants[:edited], 7, *constants[edited + 1 :]], range(count))
    users = {edited}
    while more := {number for number in range(count) if users & set(uses[number])} - users:
        users |= more
    assert {number for number in range(count) if before[number] != after[number]} == users


def test_trials_of_an_edited_model_get_new_ids_and_others_keep_theirs(files):
    def ids(path):
        named = name_sweeps([path])
        names, catalogue = named.names, named.catalogue
        expanded = expand(names, SMOKE, Results.none(), catalogue).trials.values()
        return {(each.trial.model.name, each.trial.task.name): each.id for each in expanded}

    before = ids(files.path)
    after = ids(files.edit("mean(1)", "sum(1)", files.network))
    assert before.keys() == after.keys()
    assert {model for model, task in before if before[model, task] != after[model, task]} == {"averaging"}
    assert {model for model, task in before if before[model, task] == after[model, task]} == {"rnn"}
    main = expand(["main"], SMOKE, Results.none()).trials
    assert before["rnn", "modular_addition"] in main
