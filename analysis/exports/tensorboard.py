"""TensorBoard: a run for each trial, with its curves, its settings as hyperparameters and its origin as text.

Written by tensorboardX, which comes with Ray Tune.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orch.analysis.exports.export import CURVE_METRICS
from orch.analysis.exports.exporter import ExportedTrial, Exporter

_ASIDE = ".unfinished"


def known(folder: Path) -> set[str]:
    """Return the ids of the trials with a finished folder, which ends in the id."""
    return {path.name.rpartition("-")[2] for path in folder.iterdir() if path.is_dir() and path.name != _ASIDE}


def write(folder: Path, trials: Iterable[ExportedTrial]) -> None:
    """Write each trial aside, then rename its folder, so that TensorBoard and the next export see all of it or none."""
    aside = folder / _ASIDE
    for trial in trials:
        shutil.rmtree(aside, ignore_errors=True)
        _write_run(aside, trial)
        name = f"{trial.row['model']}-{trial.row['task']}-seed{trial.row['init_seed']}-{trial.id}"
        os.replace(aside, folder / name.replace(os.sep, "_"))


def _write_run(folder: Path, trial: ExportedTrial) -> None:
    from tensorboardX import SummaryWriter
    from tensorboardX.summary import hparams

    ended = trial.row["finished_at"].timestamp()
    started = ended - (trial.row["seconds"] or 0.0)
    with SummaryWriter(str(folder)) as writer:
        for summary in hparams(_plain(trial.settings), trial.metrics):
            writer.file_writer.add_summary(summary, walltime=ended)
        for point in trial.curve:
            at = started + (point["seconds"] or 0.0)
            for name in CURVE_METRICS:
                if point[name] is not None:
                    writer.add_scalar(f"curve/{name}", point[name], point["step"], walltime=at)
        for name, value in trial.metrics.items():
            writer.add_scalar(name, value, trial.row["steps_trained"], walltime=ended)
        told = [f"- {name}: {value}" for name, value in {"trial_id": trial.id, **trial.tags}.items()]
        writer.add_text("origin", "\n".join(told), trial.row["steps_trained"], walltime=ended)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as TensorBoard takes them: numbers, texts and truth values."""
    return {name: value if isinstance(value, int | float | str) else str(value) for name, value in settings.items()}


EXPORTER = Exporter(
    about="a run for each trial, for tensorboard --logdir",
    known=known,
    write=write,
    needs={"tensorboardX": "tensorboardX"},
)
