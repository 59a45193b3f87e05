"""Files in the user's cache folder that remember what trials took when they were tried, so that a plan stays fast."""

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
from pathlib import Path

from orch.core.atomic_write import write_atomically
from orch.planning.probed import Probed
from orch.sweeps.trial import TRAINER_REVISION, Trial

_FORMAT = 1


def read_probed(trial: Trial) -> Probed | None:
    """Return what the trial took before, with the same code on this machine; None if it is not known."""
    try:
        return Probed(**json.loads(_path(trial).read_text()))
    except (OSError, ValueError, TypeError, RuntimeError):
        return None  # there is no such file, a broken one, or no home folder


def write_probed(trial: Trial, probed: Probed) -> None:
    """Remember what the trial took, if the folder can be written."""
    try:
        path = _path(trial)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(dataclasses.asdict(probed)).encode())
    except (OSError, RuntimeError):
        return  # the folder is read-only, or the user has no home folder


def _path(trial: Trial) -> Path:
    identity = {
        "format": _FORMAT,
        "trial": trial.to_dict(),
        "revisions": [trial.model.revision, trial.task.revision, TRAINER_REVISION],
        "versions": [
            importlib.metadata.version("torch"),
            importlib.metadata.version("orch"),
            platform.python_version(),
        ],
        "machine": platform.node(),
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "orch" / "probes" / f"{digest}.json"
