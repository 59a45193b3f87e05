"""Run commands on a cluster from the user's own machine: the option `--on FILE`."""

import dataclasses
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from orch.cluster.check import check_launcher
from orch.cluster.head import HeadUnreachable, find_head
from orch.cluster.jobs import STOPPED, UNDER_WAY, ConnectionLost, Jobs, connect
from orch.cluster.launcher import Launcher
from orch.cluster.rules import check_store
from orch.core.errors import InvalidSettings, OrchError
from orch.store import scrub
from orch.usercode import UserCode

SSH_FAILED = 255


def run_as_job(
    file: str,
    words: Sequence[str],
    store: str | None,
    codes: Sequence[UserCode],
    detach: bool,
    say: Callable[[str], None],
    write: Callable[[str], None],
) -> int:
    """Submit `orch WORDS` to the cluster of a launcher file, follow its log and return its exit code.

    The job continues whatever happens to this process. With `detach` this returns once trials are running, so that
    errors found before the first trial are still shown. `say` prints our messages, `write` prints the job's log.
    """
    launcher = checked(file)
    entrypoint = job_command(launcher, words, store)
    with connect(launcher) as jobs:
        name = jobs.submit(entrypoint, codes)
        say(f"submitted to {file} as {name}: {entrypoint}")
        return _follow(jobs, name, file, UNDER_WAY if detach else None, say, write)


def show_log(file: str, follow: bool, say: Callable[[str], None], write: Callable[[str], None]) -> int:
    """Print the log of the sweep that was submitted last. With `follow`, wait for its end and return its exit code."""
    with connect(checked(file)) as jobs:
        name = jobs.newest()
        if name is None:
            raise OrchError(
                f"no sweep was submitted to {file} since its head started: orch sweep --on {file} submits one;"
                " orch logs --store has the logs of all"
            )
        if follow:
            return _follow(jobs, name, file, None, say, write)
        write(jobs.log(name))
        return 0


def run_on_head(file: str, words: Sequence[str], store: str | None) -> int:
    """Run `orch WORDS` on the head, with its output shown here, and return its exit code."""
    launcher = checked(file)
    head = find_head(launcher)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    command = head.shell(["orch", *words, *store_words(launcher, store)], terminal)
    sys.stdout.flush()
    done = subprocess.run(
        head.ssh("-t" if terminal else "-T", command=command),
        stdin=None if terminal else subprocess.DEVNULL,
        check=False,
    )
    if done.returncode == SSH_FAILED:
        raise HeadUnreachable(f"the head at {head.address} cannot be reached by ssh: start it with ray up {file}")
    return done.returncode


def checked(file: str) -> Launcher:
    """Read a launcher file, or raise one error that lists everything wrong with it."""
    report = check_launcher(Path(file))
    if report.errors:
        raise InvalidSettings(report.errors)
    return report.launcher


def job_command(launcher: Launcher, words: Sequence[str], store: str | None) -> str:
    """Build the command line of a job. Everyone on the cluster can see it, so a credential in it is an error."""
    command = shlex.join(["orch", *words, *store_words(launcher, store)])
    if scrub(command) != command:
        shown = f"everybody on the cluster can see a job's command, and a credential stands in it ({scrub(command)})"
        raise InvalidSettings([f"{shown}: put it into the environment of the machines instead"])
    return command


def store_words(launcher: Launcher, given: str | None) -> list[str]:
    """Build the --store option: the given store if every machine can reach it, else the launcher file's."""
    if given is not None:
        problems = [problem for problem in check_store(dataclasses.replace(launcher, store=given)) if problem.fatal]
        if problems:
            raise InvalidSettings([problem.text.replace("ORCH_STORE=", "--store ") for problem in problems])
        return ["--store", given]
    store = launcher.store
    # A store with a variable or with credentials stays in the environment of the machines.
    if store is None or "$" in store or scrub(store) != store:
        return []
    return ["--store", store]


def _follow(
    jobs: Jobs,
    name: str,
    file: str,
    until: re.Pattern[str] | None,
    say: Callable[[str], None],
    write: Callable[[str], None],
) -> int:
    back = f"orch logs --on {file} --follow shows it again; ray exec {file} 'ray job stop {name}' stops it"
    try:
        code = jobs.follow(name, write, until)
    except KeyboardInterrupt:
        say(f"the log is no longer followed, but the sweep continues: {back}")
        return STOPPED
    except ConnectionLost as lost:
        raise ConnectionLost(f"{lost}; unless the head itself is gone, the sweep continues: {back}") from None
    if code is None:
        say(f"the sweep continues without this terminal: {back}")
        return 0
    return code
