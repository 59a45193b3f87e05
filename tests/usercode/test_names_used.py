"""What a class uses, found from names in its file and in others: only edits of that change its revision."""

import pytest

from orch.usercode.revision import revision
from tests.usercode.revised import changed, code

MODEL = """\
import torch
from torch import nn
from .net import Network, helper
from . import tools

SIZE = 3
OTHER = 4


def used(x):
    return tools.scale(x) * SIZE


def unused(x):
    return OTHER


class Base:
    depth = 1


class Model(Base):
    width: int = 8

    def forward(self, x):
        from .lazy import late

        return used(x) + helper(x) + late(x, nn)


class Another(Base):
    size = OTHER
"""


SIBLINGS = {
    "net": "FACTOR = 2\ndef helper(x):\n    return FACTOR * x\nclass Network:\n    pass\n",
    "tools": "def scale(x):\n    return x\ndef other(x):\n    return x\n",
    "lazy": "import torch\nBITS = 3\ndef late(x, nn):\n    return inner(x)\ndef inner(x):\n    return x\nlast = 1\n",
}


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("sweep", "SIZE = 3", "SIZE = 5", True),
        ("sweep", "SIZE = 3", "SIZE: int = 3", False),
        ("sweep", "SIZE = 3", "SIZE = 3\nSIZE += 1", True),
        ("sweep", "OTHER = 4", "OTHER = 5", False),
        ("sweep", "return OTHER", "return SIZE", False),
        ("sweep", "depth = 1", "depth = 2", True),
        ("sweep", "size = OTHER", "size = 1", False),
        ("sweep", "width: int = 8", "width: float = 8", True),
        ("sweep", "width: int = 8", 'width: int = 8\n    """How wide."""', False),
        ("sweep", "class Model", "@torch.compile\nclass Model", True),
        ("sweep", "class Model(Base)", "class Model(Another)", True),
        ("sweep", "class Another", "@torch.compile\nclass Another", False),
        ("sweep", "def used(x)", "def used(x: int) -> float", False),
        ("sweep", "def used(x)", "@torch.jit.script\ndef used(x: int)", True),
        ("sweep", "from torch import nn", "from torch import fft, nn", False),
        ("sweep", "from torch import nn", "from other import nn", True),
        ("sweep", "OTHER = 4", "OTHER = 4\nBase.depth = 3", True),
        ("sweep", "OTHER = 4", "OTHER = 4\nif OTHER:\n    Base = 1", True),
        ("sweep", "OTHER = 4", "OTHER = 4\nprint(OTHER)", True),
        ("sweep", "OTHER = 4", "OTHER = 4\n_ = torch.manual_seed(0)", True),
        ("sweep", "OTHER = 4", "OTHER = 4\nif __name__ == '__main__':\n    print(OTHER)", False),
        ("sweep", "from .net import Network, helper", "from .net import Network\nfrom .net import helper", False),
        ("sweep", "from .net import Network, helper", "from .net import Network as helper", True),
        ("net", "FACTOR = 2", "FACTOR = 3", True),
        ("net", "class Network:\n    pass", "class Network:\n    x = 1", False),
        ("net", "class Network:", "torch.set_flag()\nclass Network:", True),
        ("tools", "def scale(x):\n    return x", "def scale(x):\n    return -x", True),
        ("tools", "def other(x):\n    return x", "def other(x):\n    return -x", False),
        ("lazy", "return x\nlast", "return -x\nlast", True),
        ("lazy", "BITS = 3", "BITS = 4", False),
        ("lazy", "last = 1", "late.cache = {}", True),
    ],
)
def test_only_what_a_class_uses_counts_for_it(file, old, new, changes):
    texts = {"sweep": MODEL, **SIBLINGS}
    assert texts[file].count(old) == 1
    edited = texts | {file: texts[file].replace(old, new)}
    before, after = (code(each["sweep"], **{name: each[name] for name in SIBLINGS}) for each in (texts, edited))
    assert changed(before, after) == changes


@pytest.mark.parametrize(
    "line",
    [
        "x = eval('y')",
        "def f():\n    globals()['Model'] = None",
        "def f():\n    global Model\n    Model = None",
        "def f():\n    Model.size = 3",
        "CACHE = {}\ndef f(x):\n    CACHE[x] = 1",
        "KNOWN = []\ndef f(x):\n    KNOWN.append(x)\n    return x",
        "import importlib",
        "class Base:\n    def __init_subclass__(cls):\n        pass",
        "from importlib import import_module",
        "import sys\nx = sys.modules",
        "def __getattr__(name):\n    return 1",
    ],
)
def test_where_names_do_not_tell_what_is_used_every_statement_counts(line):
    text = f"{line}\nclass Model:\n    pass\nclass Other:\n    x = 1\n"
    assert changed(text, text.replace("x = 1\n", "x = 2\n"))
    assert not changed(text, text.replace("x = 1\n", "x = 1  # one\n"))
    asking = text + "TITLE = 'a'\ndef cells(scale, results):\n    yield 1\n"
    assert not changed(asking, asking.replace("yield 1", "yield 2").replace("'a'", "'b'"))


@pytest.mark.parametrize(
    "line",
    [
        "import torch\ndef f(x):\n    return torch.add(x, 1)",
        "def f(x):\n    import torch\n    return torch.add(x, 1)",
        "def f(x):\n    found = []\n    found.append(x)\n    return [found.pop() for _ in x]",
        "class F:\n    def f(self, x):\n        self.x = x\n        self.p[0].size = 1\n        self.p.append(x)",
        "def f(x):\n    def g(y):\n        x[y] = 1\n        x.add(y)\n    return g",
        "def f(self):\n    setattr(self, 'x', 1)\n    return self.eval()",
        "KNOWN = [1]\ndef f(x):\n    return KNOWN.index(x) + KNOWN[0]",
        "from abc import ABCMeta\nclass F(metaclass=ABCMeta):\n    pass",
    ],
)
def test_ordinary_code_leaves_other_classes_alone(line):
    text = f"{line}\nclass Model:\n    pass\nclass Other:\n    y = 1\n"
    assert not changed(text, text.replace("y = 1\n", "y = 2\n"))


def test_the_variables_of_a_comprehension_are_no_use_of_another():
    text = "ONE = [p for p in range(2)]\nTWO = [p for p in range(3)]\nclass Model:\n    parts = ONE\n"
    assert not changed(text + "other = TWO\n", text.replace("range(3)", "range(4)") + "other = TWO\n")
    assert changed(text, text.replace("range(2)", "range(4)"))
    assert changed("[q := 1]\nclass Model:\n    x = q\n", "[q := 2]\nclass Model:\n    x = q\n")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("from . import b\nclass Model:\n    x = getattr(b, 'y')\n", "y = 1", "y = 2"),
        ("from .b import *\nclass Model:\n    x = y\n", "y = 1", "y = 2"),
        ("class Model:\n    def network(self):\n        from . import b\n        return b.y\n", "y = 1", "y = 2"),
        (
            "class Model:\n    def network(self):\n        from . import b as c\n        return f(c)\n",
            "z = 1",
            "z = 2",
        ),
        ("try:\n    from .b import y\nexcept ImportError:\n    y = 3\nclass Model:\n    x = y\n", "y = 1", "y = 2"),
        ("class Model:\n    x: 'y'\nfrom .b import y\n", "y = 1", "y = 2"),
        ("from . import b\nTOOLS = [b]\nclass Model:\n    x = TOOLS\n", "z = 1", "z = 2"),
    ],
)
def test_a_use_of_another_file_is_found_however_it_is_written(text, old, new):
    other = "y = 1\nz = 1\n"
    assert changed(code(text, b=other), code(text, b=other.replace(old, new)))


@pytest.mark.parametrize(
    "register",
    ["@ALL.append", "@add(ALL)", "@ALL.add"],
)
def test_a_class_that_registers_itself_counts_for_the_class_that_reads_the_registry(register):
    text = (
        "ALL = make()\ndef add(all):\n    return all.append\n"
        f"{register}\nclass Part:\n    size = 1\nclass Model:\n    parts = ALL\n"
    )
    assert changed(text, text.replace("size = 1", "size = 2"))


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("FIRST = ALL.pop()", True),
        ("FIRST = take(ALL)", True),
        ("FIRST = take(SIZE)", False),
        ("FIRST = len(ALL)", False),
        ("class First:\n    ALL.append(1)", True),
        ("class First:\n    ALL[0] = 1", True),
        ("class First:\n    size = ALL[0]", False),
        ("def first(x=ALL.pop()): return x", True),
        ("def first(): return sum(ALL)", False),
    ],
)
def test_a_definition_that_may_change_a_shared_object_counts_for_all(line, counts):
    text = "SIZE = 2 * 3\nALL = [1, 2]\ndef take(x): return x\nclass Model:\n    parts = ALL\n"
    both = f"{line}\nclass Other:\n    def run(self): return FIRST, First, first\n"
    assert changed(text, text + both) == counts


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("return 2 * x", "return 3 * x", True),
        ("heads: int = 2", "heads: float = 2", True),
        ("x: Tensor", "x", False),
        ("return 1", "return 0", False),
        ("learning_rates=[1]", "learning_rates=[1, 2]", False),
        ("orch.model(Net)", "orch.model(Net, name='net')", True),
        ("orch.model(Other)", "orch.model(Other, name='other')", False),
    ],
)
def test_a_model_made_of_a_module_by_a_call_is_identified_by_both(old, new, changes):
    text = (
        "import orch\nfrom torch import Tensor, nn\nclass Net(nn.Module):\n"
        "    def __init__(self, heads: int = 2):\n        self.heads = heads\n"
        "    def forward(self, x: Tensor):\n        return 2 * x\n"
        "class Other(nn.Module):\n    def forward(self, x):\n        return 1\n"
        "net = orch.model(Net)\nother = orch.model(Other)\ncells = orch.grid(models=[net], learning_rates=[1])\n"
    )
    assert text.count(old) == 1
    before, after = (
        revision(code(each), [("sweep.py", "net"), ("sweep.py", "Net")]) for each in (text, text.replace(old, new))
    )
    assert (before != after) == changes
