"""Check a launcher file before a machine is paid for, without using the network."""

import dataclasses
from pathlib import Path

from orch.cluster.kubernetes import Manifest, check_manifest, is_manifest
from orch.cluster.launcher import (
    Launcher,
    from_config,
    load_yaml,
    read_launcher,
    read_text,
    shape_problems,
    without_comments,
)
from orch.cluster.machine_rules import check_machines
from orch.cluster.placeholders import missing_edits
from orch.cluster.problem import Problem, error
from orch.cluster.rules import check_access, check_shipping, check_store, check_threads, check_versions
from orch.cluster.schema import prepare


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LauncherReport:
    """Everything found in a launcher file. A file with `errors` cannot be used."""

    launcher: Launcher
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def check_launcher(path: Path | str) -> LauncherReport:
    """Find everything wrong with a launcher file: YAML for `ray up` or for Kubernetes, or a Slurm script."""
    path = Path(path)
    if path.suffix == ".sh":
        launcher = read_launcher(path)
        problems = [*missing_edits(without_comments(read_text(path))), *check_store(launcher), *check_access(launcher)]
        return _report(launcher, problems)
    config = load_yaml(path)
    if is_manifest(config):
        manifest = Manifest(path, config)
        return _report(manifest.launcher, [*missing_edits(config), *check_manifest(manifest)])
    prepared, problems = prepare(config)
    if wrong := shape_problems(config):
        return _report(from_config(path, {}), [*map(error, wrong), *problems, *missing_edits(config)])
    # Check with Ray's defaults filled in, except max_workers: the user did not choose Ray's default of 2.
    launcher = from_config(path, (prepared or config) | {"max_workers": config.get("max_workers")})
    problems += missing_edits(config)
    for rule in (check_versions, check_store, check_access, check_shipping, check_machines, check_threads):
        problems += rule(launcher)
    return _report(launcher, problems)


def _report(launcher: Launcher, problems: list[Problem]) -> LauncherReport:
    unique = dict.fromkeys(problems)
    return LauncherReport(
        launcher=launcher,
        errors=tuple(problem.text for problem in unique if problem.fatal),
        warnings=tuple(problem.text for problem in unique if not problem.fatal),
    )
