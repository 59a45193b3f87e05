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

__all__ = [
    "Cell",
    "ModelConfig",
    "Network",
    "OrchError",
    "PerTrial",
    "Result",
    "Results",
    "Scale",
    "Store",
    "Study",
    "Task",
    "Trial",
    "Vocabulary",
    "__version__",
    "load",
    "make_trial",
    "setting",
    "train",
]

if TYPE_CHECKING:
    from orch.analysis import load
    from orch.analysis.study import Study
    from orch.core.errors import OrchError
    from orch.core.settings import setting
    from orch.models import ModelConfig, Vocabulary
    from orch.models.network import Network, PerTrial
    from orch.store import Store
    from orch.sweeps.cell import Cell
    from orch.sweeps.result import Result
    from orch.sweeps.scales import Scale
    from orch.sweeps.selection import Results
    from orch.sweeps.trial import Trial, make_trial
    from orch.tasks import Task
    from orch.training.train import train

    __version__: str
else:
    _HOMES = {
        "Cell": "orch.sweeps.cell",
        "ModelConfig": "orch.models",
        "Network": "orch.models.network",
        "OrchError": "orch.core.errors",
        "PerTrial": "orch.models.network",
        "Result": "orch.sweeps.result",
        "Results": "orch.sweeps.selection",
        "Scale": "orch.sweeps.scales",
        "Store": "orch.store",
        "Study": "orch.analysis.study",
        "Task": "orch.tasks",
        "Trial": "orch.sweeps.trial",
        "Vocabulary": "orch.models",
        "load": "orch.analysis",
        "make_trial": "orch.sweeps.trial",
        "setting": "orch.core.settings",
        "train": "orch.training.train",
    }

    def __getattr__(name: str) -> Any:
        """Import an exported name on first use, and keep it."""
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
