"""The built-in catalogue extended with a user's files."""

import functools
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from orch.core.errors import InvalidCode
from orch.models import ModelConfig
from orch.sweeps.catalogue import BUILT_IN, Catalogue
from orch.sweeps.definitions import Definitions, name_made_tasks
from orch.tasks import Task
from orch.usercode.clashes import column_clashes, name_clashes
from orch.usercode.code import UserCode
from orch.usercode.kept import with_kept
from orch.usercode.loading import load
from orch.usercode.user_sweep import UserSweep

if TYPE_CHECKING:
    from orch.store import Store

S = TypeVar("S")
T = TypeVar("T")


def read_codes(paths: Iterable[str], store: "Store | None" = None) -> dict[str, UserCode]:
    """Read files of a user and what they import; return the code of each by its path.

    With a store, earlier results count for edited code where `orch keep` has recorded that in it.
    """
    paths = list(paths)
    codes = _all_or_problems(UserCode.read, paths)
    if store is not None:
        codes = _all_or_problems(functools.partial(with_kept, store), codes)
    return dict(zip(paths, codes, strict=True))


@functools.lru_cache(maxsize=64)
def make_catalogue(codes: tuple[UserCode, ...]) -> Catalogue:
    """Return the built-in catalogue extended with the sweeps, models and tasks of a user's files.

    One error lists everything that is wrong with the files and every name that is taken. Equal codes give the very same
    catalogue.
    """
    files = _all_or_problems(load, dict.fromkeys(codes))
    models: dict[str, type[ModelConfig]] = {}
    tasks: dict[str, type[Task]] = {}
    for file in reversed(files):  # where several share a definition, it is the same in all: that of the first counts
        models |= file.models
        tasks |= file.tasks
    definitions = Definitions(
        MappingProxyType({**BUILT_IN.models, **models}), MappingProxyType({**BUILT_IN.tasks, **tasks})
    )
    if problems := name_clashes(files) or column_clashes(definitions.user_types):
        raise InvalidCode(problems)
    sweeps = {file.code.name: UserSweep(file.code.name, file.sweep.__name__, file.code, definitions) for file in files}
    made_tasks = name_made_tasks((task for file in files for task in file.made_tasks), definitions.tasks)
    return Catalogue(
        definitions.models,
        definitions.tasks,
        MappingProxyType({**BUILT_IN.sweeps, **sweeps}),
        made_tasks=MappingProxyType(made_tasks),
    )


def _all_or_problems(make: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Return what is made of each item. If some cannot be made, raise one error that lists the problems of all."""
    made, problems = [], []
    for item in items:
        try:
            made.append(make(item))
        except InvalidCode as error:
            problems += error.problems
    if problems:
        raise InvalidCode(problems)
    return made
