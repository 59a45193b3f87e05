"""`orch.sweep`: run a grid of models and tasks that were defined in a notebook or a script."""

import os
import re
from collections.abc import Sequence
from typing import Any

from orch.analysis.deciding import check_deciding
from orch.core.errors import InvalidSettings
from orch.notebook.own_study import OwnStudy
from orch.running.options import RunOptions
from orch.running.requests import Request
from orch.store import DEFAULT_STORE, Store
from orch.sweeps.catalogue import BUILT_IN
from orch.sweeps.grid import AnyTask, Model, grid
from orch.sweeps.registry import ALL
from orch.sweeps.scales import LAPTOP, find_scale
from orch.usercode.kept import with_kept
from orch.usercode.live_code import live_code

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def sweep(
    *,
    models: Sequence[Model],
    tasks: Sequence[AnyTask],
    learning_rates: Sequence[float] | float | None = None,
    seeds: Sequence[int] | int | None = None,
    width: int | None = None,
    store: str | os.PathLike[str] = DEFAULT_STORE,
    name: str = "study",
    title: str = "",
    scale: str = LAPTOP.name,
    cpus: int | None = None,
    device: str = "auto",
    max_hours: float | None = None,
    join: bool = False,
    quiet: bool = False,
    decide: str | None = None,
    confidence: float | None = None,
    **settings: Any,
) -> OwnStudy:
    """Train every model on every task, with these learning rates and seeds, and return the study.

    It runs like `orch sweep`, on this machine or on the cluster of RAY_ADDRESS. Trials that the store has are not run
    again; Ctrl-C or the notebook's stop button ends it with checkpoints, and `study.resume()` continues it. Models,
    tasks and `settings` are those of `orch.grid`; what is not given comes from the scale. Classes and functions of the
    notebook or script are sent to the workers as text, with all they use, and kept in the store under `name`.
    `decide="cells"` runs first what settles a cell and leaves out the trials of settled ones; with `confidence=0.95`, a
    cell is settled once it is so sure that most seeds learn it, or that most do not.
    """
    check_deciding(decide, confidence)
    study = define(
        models=models,
        tasks=tasks,
        learning_rates=learning_rates,
        seeds=seeds,
        width=width,
        store=store,
        name=name,
        title=title,
        scale=scale,
        **settings,
    )
    options = RunOptions(num_cpus=cpus, device=device, max_hours=max_hours, join=join, quiet=quiet, ends_process=False)
    return study.run(options, decide, confidence)


def define(
    *,
    store: str | os.PathLike[str] = DEFAULT_STORE,
    name: str = "study",
    title: str = "",
    scale: str = LAPTOP.name,
    **grid_arguments: Any,
) -> OwnStudy:
    """Return the study that `sweep` would run, after all checks, without running it."""
    find_scale(scale)
    if not _NAME.fullmatch(name):
        raise InvalidSettings([f"{name!r} is no name for a sweep: use letters, digits, _ and -, a letter first"])
    sweep_name = name.replace("_", "-")
    if sweep_name in {*BUILT_IN.sweeps, ALL}:
        raise InvalidSettings([f"there is a built-in sweep {sweep_name}: choose another name"])
    opened = Store.open(store)
    code = with_kept(opened, live_code(name, title or sweep_name, grid(**grid_arguments)))
    request = Request((sweep_name,), scale, (), (code,))
    request.plan(None)  # errors are reported before anything is started
    return OwnStudy(request, opened)
