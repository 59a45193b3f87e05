"""MLflow: a run for each trial in the experiment `orch`, in a database in the folder.

`mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db` shows it.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from orch.analysis.exports.export import CURVE_METRICS
from orch.analysis.exports.exporter import ExportedTrial, Exporter

EXPERIMENT = "orch"
DATABASE = "mlflow.db"
TRIAL, COMPLETE = "orch.trial_id", "orch.complete"
"""Tags of a run: its trial, and whether all of it was written."""
_MOST_METRICS, _MOST_PARAMS, _MOST_RUNS = 1000, 100, 1000
"""What MLflow accepts in one request."""
_LONGEST = 5000


def known(folder: Path) -> set[str]:
    """Return the ids of the runs that are complete, and delete the others, which an interrupted export left."""
    client, experiment = _open(folder)
    found = set()
    for run in list(_runs(client, experiment)):
        if run.data.tags.get(COMPLETE):
            found.add(run.data.tags[TRIAL])
        else:
            client.delete_run(run.info.run_id)
    return found


def write(folder: Path, trials: Iterable[ExportedTrial]) -> None:
    """Add a run for each trial."""
    client, experiment = _open(folder)
    for trial in trials:
        _write_run(client, experiment, trial)


def _open(folder: Path) -> tuple[Any, str]:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{(folder / DATABASE).absolute()}")
    found = client.get_experiment_by_name(EXPERIMENT)
    if found is not None:
        return client, found.experiment_id
    return client, client.create_experiment(EXPERIMENT, (folder / "artifacts").absolute().as_uri())


def _runs(client: Any, experiment: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs([experiment], max_results=_MOST_RUNS, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _write_run(client: Any, experiment: str, trial: ExportedTrial) -> None:
    from mlflow.entities import Metric, Param, RunTag

    ended = int(trial.row["finished_at"].timestamp() * 1000)
    started = ended - int((trial.row["seconds"] or 0.0) * 1000)
    run = client.create_run(experiment, start_time=started, tags={TRIAL: trial.id}, run_name=trial.name)
    metrics = [
        Metric(name, point[name], started + int((point["seconds"] or 0.0) * 1000), point["step"])
        for point in trial.curve
        for name in CURVE_METRICS
        if point[name] is not None
    ]
    last = trial.row["steps_trained"] or 0
    metrics += [
        Metric(f"final_{name}" if name in CURVE_METRICS else name, value, ended, last)
        for name, value in trial.metrics.items()
    ]
    params = [Param(name, str(value)[:_LONGEST]) for name, value in trial.settings.items()]
    tags = [RunTag(name, value[:_LONGEST]) for name, value in trial.tags.items()]
    for start in range(0, len(metrics), _MOST_METRICS):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + _MOST_METRICS])
    for start in range(0, len(params), _MOST_PARAMS):
        client.log_batch(run.info.run_id, params=params[start : start + _MOST_PARAMS])
    client.log_batch(run.info.run_id, tags=tags)
    client.set_terminated(run.info.run_id, "FINISHED", ended)
    client.set_tag(run.info.run_id, COMPLETE, "true")


EXPORTER = Exporter(
    about="a run for each trial, in a database for mlflow ui",
    known=known,
    write=write,
    needs={"mlflow": "mlflow-skinny", "sqlalchemy": "sqlalchemy"},
)
