"""Weights & Biases, offline: a run for each trial. Nothing is sent; `wandb sync FOLDER/wandb/offline-run-*` does that.

The id of a run is that of its trial, so a run that is synchronised twice is one run.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from orch.analysis.exports.export import CURVE_METRICS
from orch.analysis.exports.exporter import ExportedTrial, Exporter

PROJECT = "orch"
LEDGER = "exported.txt"
"""File with the ids of the trials whose runs are complete, one in a line."""


def known(folder: Path) -> set[str]:
    """Return the ids in the ledger. Its last line counts only if it was written to its end."""
    ledger = folder / LEDGER
    return set(ledger.read_text().rpartition("\n")[0].split()) if ledger.exists() else set()


def write(folder: Path, trials: Iterable[ExportedTrial]) -> None:
    """Add a run for each trial, without what an interrupted export left of it."""
    complete = known(folder)
    (folder / LEDGER).write_text("".join(f"{trial_id}\n" for trial_id in sorted(complete)))
    for trial in trials:
        for left in (folder / "wandb").glob(f"offline-run-*-{trial.id}"):
            shutil.rmtree(left)
        _write_run(folder, trial)
        with (folder / LEDGER).open("a") as ledger:
            ledger.write(f"{trial.id}\n")


def _write_run(folder: Path, trial: ExportedTrial) -> None:
    import wandb

    settings = wandb.Settings(
        silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=True, x_disable_meta=True
    )
    run = wandb.init(
        project=PROJECT,
        dir=str(folder),
        mode="offline",
        id=trial.id,
        name=trial.name,
        group=f"{trial.row['model']}-{trial.row['task']}",
        tags=[trial.row["model"], trial.row["task"], trial.row["stop_reason"]],
        config={**trial.settings, "origin": trial.tags},
        settings=settings,
    )
    for point in trial.curve:
        values = {name: point[name] for name in (*CURVE_METRICS, "seconds") if point[name] is not None}
        run.log(values, step=point["step"])
    for name, value in trial.metrics.items():
        run.summary[name] = value
    run.finish()


EXPORTER = Exporter(about="offline runs, for wandb sync", known=known, write=write, needs={"wandb": "wandb"})
