"""Word problems: the product of elements of a finite group, given by its name."""

from dataclasses import dataclass

from orch.core.errors import InvalidSettings, UnknownName
from orch.core.settings import setting
from orch.tasks.notation.groups import Group, make_group
from orch.tasks.task import FixedSizeTask


@dataclass(frozen=True, kw_only=True, slots=True)
class WordProblem(FixedSizeTask):
    """s_t = s_{t-1} x_t, where s_0 is the identity: the inputs are elements of a group, the target is their product.

    | name | group | order |
    | --- | --- | --- |
    | `Z60` | cyclic: addition modulo 60 | 60 |
    | `S3`, `S4`, `S5` | all permutations of 3, 4, 5 things | 6, 24, 120 |
    | `A4`, `A5` | even permutations | 12, 60 |
    | `D6`, `D8` | dihedral, symmetries of a triangle and a square | 6, 8 |
    | `Q8` | quaternions | 8 |
    | `H3` | Heisenberg: unitriangular 3 x 3 matrices modulo 3 | 27 |
    | `A4xZ5` | direct product | 60 |

    The number of `D8` is its order, as in Liu et al., 2023, "Transformers Learn Shortcuts to Automata", and not the
    number of corners; the task `dihedral` counts corners (`--modulus 4`). Groups have at most 1,000 elements.

    After a colon stands which elements are inputs: all of them if nothing is said; `generators` (a small set); for S
    also `swaps` (of any two) and `adjacent` (of neighbours), for A `cycles` (of three), for D `reflections`. With all
    elements as inputs their tokens are also the targets; otherwise targets have tokens of their own.

    In S3, the swap of the first two and then that of the last two take 1 to 3, 2 to 1 and 3 to 2:

    >>> task = WordProblem(group="S3")
    >>> [task.spell(symbol) for symbol in range(6)]
    ['123', '132', '213', '231', '312', '321']
    >>> task.spell(task.fold([2, 1]))
    '312'
    >>> swaps = WordProblem(group="S5:swaps")
    >>> swaps.num_symbols, swaps.num_classes
    (10, 120)
    >>> WordProblem(group="S5:all") == WordProblem(group="S5")
    True

    Merrill et al., 2024, "The Illusion of State in State-Space Models", compare Z60, A4xZ5 and A5: 60 elements each.
    A product of n swaps is even or odd with n, so that half of the classes can occur at each length.
    """

    name = "group"
    revision = 1
    title = "Word problem"

    group: str = setting("S3", "name of the group, such as S5, or with its inputs S5:swaps")

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", self.group.removesuffix(":all"))
        FixedSizeTask.__post_init__(self)

    @property
    def summary(self) -> str:
        """Name of the group and of its inputs."""
        return self.group

    @property
    def _group(self) -> Group:
        return make_group(self.group.partition(":")[0])

    @property
    def _inputs(self) -> tuple[int, ...]:
        """Elements that can be read, in the order of their symbols."""
        chosen = self.group.partition(":")[2] if ":" in self.group else "all"
        sets = self._group.inputs
        if chosen not in sets:
            raise InvalidSettings([str(UnknownName(f"set of inputs of {self.group.partition(':')[0]}", chosen, sets))])
        return sets[chosen]

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(len(self._inputs)),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return self._group.table[state][self._inputs[symbol]]

    def target(self, state: int) -> int:
        return self.num_readable + state if self.unread else state

    @property
    def num_classes(self) -> int:
        self._inputs  # noqa: B018  a wrong name is reported when the task is made
        return self._group.order

    @property
    def unread(self) -> tuple[str, ...]:
        return () if ":" not in self.group else self._group.names

    def spell(self, symbol: int) -> str:
        return self._group.names[self._inputs[symbol]]
