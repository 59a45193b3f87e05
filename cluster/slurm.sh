#!/usr/bin/env bash
# An allocation becomes a Ray cluster, runs one `orch sweep` and ends: edit what says EDIT-ME, then
#   sbatch cluster/slurm.sh all --scale paper
# Once before, on the login node: bash cluster/setup.sh. Stopped or out of time, the same command goes on where it was.
#SBATCH --job-name=orch
#SBATCH --partition=EDIT-ME
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --no-kill
#SBATCH --signal=B:TERM@120
set -euo pipefail
export ORCH_STORE=/EDIT-ME/runs     # a folder that every node mounts, or s3://bucket/runs
export RAY_AUTH_MODE=token OMP_NUM_THREADS=1
source .venv/bin/activate
ray get-auth-token --generate > /dev/null    # into ~/.ray, which the nodes share
# This script runs on the first node. Its first address must be one that the others reach.
export address=$(hostname -I | cut -d ' ' -f 1) port=$((20000 + SLURM_JOB_ID % 10000))
srun --no-kill --cpus-per-task="$SLURM_CPUS_PER_TASK" bash -c '
  ray() { command ray start --block --num-cpus="$SLURM_CPUS_PER_TASK" "$@"; }
  if [ "$SLURM_NODEID" = 0 ]; then ray --head --node-ip-address="$address" --port="$port"; fi
  until ray --address="$address:$port"; do sleep 5; done' &
cluster=$!
trap 'kill $cluster' EXIT
until ray status --address="$address:$port" > /dev/null 2>&1; do sleep 2; done
RAY_ADDRESS=$address:$port orch sweep "$@" --yes &
driver=$!
trap 'kill -TERM $driver' TERM    # two minutes before the end: every running trial is checkpointed
while wait $driver || true; kill -0 $driver 2> /dev/null; do :; done
wait $driver
