"""Commands on a cluster, from the user's own machine: `--on FILE`."""

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
    """Submit `orch WORDS` to the cluster of a launcher file and follow its log; its exit code.

    The job goes on whatever becomes of this process. With `detach` this returns once trials are under way, so that what
    speaks against them has been told. `say` is for what happens here, `write` for the job's log.
    """
    launcher = checked(file)
    entrypoint = job_command(launcher, words, store)
    with connect(launcher) as jobs:
        name = jobs.submit(entrypoint, codes)
        say(f"submitted to {file} as {name}: {entrypoint}")
        return _follow(jobs, name, file, UNDER_WAY if detach else None, say, write)


def show_log(file: str, follow: bool, say: Callable[[str], None], write: Callable[[str], None]) -> int:
    """The log of the sweep that was submitted last; with `follow` to its end, for its exit code."""
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
    """Run `orch WORDS` on the head and let it print here, in colours if this is a terminal; its exit code."""
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
    """A launcher file that can be used as it is; everything that speaks against it at once."""
    report = check_launcher(Path(file))
    if report.errors:
        raise InvalidSettings(report.errors)
    return report.launcher


def job_command(launcher: Launcher, words: Sequence[str], store: str | None) -> str:
    """The command line of a job. Whoever may see the cluster may see it, so it holds no credentials."""
    command = shlex.join(["orch", *words, *store_words(launcher, store)])
    if scrub(command) != command:
        shown = f"everybody on the cluster can see a job's command, and a credential stands in it ({scrub(command)})"
        raise InvalidSettings([f"{shown}: put it into the environment of the machines instead"])
    return command


def store_words(launcher: Launcher, given: str | None) -> list[str]:
    """The store that was asked for, if every machine can reach it, else the file's."""
    if given is not None:
        problems = [problem for problem in check_store(dataclasses.replace(launcher, store=given)) if problem.fatal]
        if problems:
            raise InvalidSettings([problem.text.replace("ORCH_STORE=", "--store ") for problem in problems])
        return ["--store", given]
    store = launcher.store
    # What is spelled out on the machines, or holds credentials, stands in their environment and stays there.
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
    back = f"orch logs --on {file} --follow comes back to it; ray exec {file} 'ray job stop {name}' stops it"
    try:
        code = jobs.follow(name, write, until)
    except KeyboardInterrupt:
        say(f"no longer followed, and it goes on: {back}")
        return STOPPED
    except ConnectionLost as lost:
        raise ConnectionLost(f"{lost}; unless the head itself is gone, the sweep goes on: {back}") from None
    if code is None:
        say(f"it goes on without this terminal: {back}")
        return 0
    return code
