"""`sbatch cluster/slurm.sh` on two nodes: Ray is real, and what stands in for Slurm is its `srun`."""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from orch.planning.plan import make_plan
from orch.store import Store
from tests.cluster.filled import EDITS, SLURM, replace
from tests.cluster.hosts import ROOT, Hosts, missing

pytestmark = pytest.mark.cluster

SRUN = """#!/bin/bash
# The command on every node at once, in the caller's folder, with the caller's home and environment, as Slurm has it.
while [[ $1 == -* ]]; do shift; done
export SLURM_NODEID=0
for node in {nodes}; do
  ssh -i {key} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$node" \\
    "$(export -p); cd $PWD; $(printf '%q ' "$@")" &
  SLURM_NODEID=$((SLURM_NODEID + 1))
done
trap 'kill $(jobs -p)' EXIT
wait
"""


@pytest.fixture
def allocation() -> Iterator[Hosts]:
    """Two nodes that share a folder and train slowly, so that the second one joins in time."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    slow = {
        "ORCH_TRAINING": "tests.engine.faults:open_training",
        "ORCH_FAULTS": '[["slow 1", {}]]',
        "PYTHONPATH": str(ROOT),
    }
    with Hosts(num_workers=1, environment=slow) as hosts:
        srun = hosts.folder / "srun"
        srun.write_text(SRUN.format(nodes=f"{hosts.head} {hosts.workers[0]}", key=hosts.key))
        srun.chmod(0o755)
        (hosts.folder / ".venv").symlink_to(sys.prefix)
        edits = EDITS[SLURM] | {"/EDIT-ME/runs": f"{hosts.folder}/runs"}
        (hosts.folder / "slurm.sh").write_text(replace(SLURM.read_text(), edits))
        yield hosts


def test_an_allocation_becomes_a_cluster_that_runs_the_sweep_and_ends(allocation):
    folder = allocation.folder
    slurm = {"SLURM_JOB_ID": "42", "SLURM_CPUS_PER_TASK": "1", "PATH": f"{folder}:$PATH"}
    settings = " ".join(f'{name}="{value}"' for name, value in slurm.items())
    script = f"cd {shlex.quote(str(folder))} && {settings} bash slurm.sh frozen-parity --scale smoke"
    output = allocation.run(allocation.head, script, seconds=120)
    assert "8 trials finished" in output
    wanted = {planned.trial.id for planned in make_plan(["frozen-parity"], "smoke", [], None).trials}
    store = Store.open(str(folder / "runs"))
    assert Counter(store.read("trials")["trial_id"].to_pylist()) == Counter(dict.fromkeys(wanted, 1))
    assert set(store.read("attempts")["host"].to_pylist()) == {allocation.head, allocation.workers[0]}
