"""orch: sweeps of small sequence models, from one trial in this process to a cluster.

    >>> import orch
    >>> trial = orch.make_trial("modular_addition", "rnn", width=8, steps=2, eval_every=1, test_length=20)
    >>> trial.label
    'rnn on modular_addition modulo 5'

`orch.train(trial)` trains it and returns its `Result`; `orch.load("bundled")` opens the results that came with orch.
The names below are imported when they are first used: `import orch` alone loads neither torch nor Ray nor pyarrow.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orch.analysis import load as load
    from orch.analysis.study import Study as Study
    from orch.core.errors import OrchError as OrchError
    from orch.core.settings import setting as setting
    from orch.models import ModelConfig as ModelConfig
    from orch.models import Vocabulary as Vocabulary
    from orch.models.module_config import model as model
    from orch.models.network import Network as Network
    from orch.models.network import PerTrial as PerTrial
    from orch.notebook.own_study import OwnStudy as OwnStudy
    from orch.notebook.sweep import sweep as sweep
    from orch.store import Store as Store
    from orch.sweeps.cell import Cell as Cell
    from orch.sweeps.grid import grid as grid
    from orch.sweeps.result import Result as Result
    from orch.sweeps.scales import Scale as Scale
    from orch.sweeps.selection import Results as Results
    from orch.sweeps.trial import Trial as Trial
    from orch.sweeps.trial import make_trial as make_trial
    from orch.tasks import Task as Task
    from orch.tasks.automaton import automaton as automaton
    from orch.tasks.from_function import task as task
    from orch.training.train import train as train

    __version__: str
else:
    _HOMES = {
        "Cell": "orch.sweeps.cell",
        "ModelConfig": "orch.models",
        "Network": "orch.models.network",
        "OrchError": "orch.core.errors",
        "OwnStudy": "orch.notebook.own_study",
        "PerTrial": "orch.models.network",
        "Result": "orch.sweeps.result",
        "Results": "orch.sweeps.selection",
        "Scale": "orch.sweeps.scales",
        "Store": "orch.store",
        "Study": "orch.analysis.study",
        "Task": "orch.tasks",
        "Trial": "orch.sweeps.trial",
        "Vocabulary": "orch.models",
        "automaton": "orch.tasks.automaton",
        "grid": "orch.sweeps.grid",
        "load": "orch.analysis",
        "make_trial": "orch.sweeps.trial",
        "model": "orch.models.module_config",
        "setting": "orch.core.settings",
        "sweep": "orch.notebook.sweep",
        "task": "orch.tasks.from_function",
        "train": "orch.training.train",
    }
    __all__ = ["__version__", *_HOMES]

    def __getattr__(name: str) -> Any:
        """Import an exported name when it is first used."""
        if name == "__version__":
            value = importlib.import_module("importlib.metadata").version("orch")
        elif name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """List the exported names too, so that an interactive shell completes them."""
        return sorted({*globals(), *__all__})
