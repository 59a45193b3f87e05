# Each task is a driver with a Ray of its own on its node, and shares the store with the other tasks.
# Slurm tells this shell that a task's time is nearly up (--signal=B:TERM@120), and only the steps of a job that it is to
# be preempted: hence the step that waits for nothing else. The driver alone gets the signal, once, writes checkpoints
# and ends, and the task returns to the queue. A signal to all processes would end Ray before the checkpoints.
set -uo pipefail
unset RAY_ADDRESS
export OMP_NUM_THREADS=1 RAY_TMPDIR
RAY_TMPDIR=$(mktemp -d /tmp/orch-XXXXXX)
trap 'rm -rf "$RAY_TMPDIR"' EXIT

requeue() { # a task that Slurm itself is ending is left to Slurm: after scancel it ends, after preemption it returns
  [ "$(squeue --noheader --format=%T --jobs="$task")" = RUNNING ] && scontrol requeue "$task"
}
stop() {
  [ -z "$told" ] || return
  told=yes
  echo "task $task is about to end: every running trial is checkpointed, and the task returns to the queue"
  kill -TERM "$driver"
  (sleep 100 && kill -0 "$driver" && requeue) 2> /dev/null & # before the time is up, even if the driver is not done
}
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID told=
"${orch[@]}" --join --yes --cpus "${SLURM_CPUS_PER_TASK:-1}" &
driver=$!
trap stop TERM
srun --overlap --ntasks=1 --quiet bash -c "trap 'kill -TERM $$' TERM; sleep infinity & wait" > /dev/null 2>&1 &
while wait "$driver"; kill -0 "$driver" 2> /dev/null; do :; done # a signal interrupts wait, but not the driver
wait "$driver"
code=$?
# 130 and 143: stopped by the signal. 3: trials failed, or other tasks run the rest; this task can do no more.
case $code in
  130 | 143) [ -z "$told" ] || requeue ;;
  3) exit 0 ;;
esac
exit "$code"
