"""User code starts processes that would go on for an hour."""

from tests.chaos import user_code
from tests.chaos.harness import Round

RAY = True
DOES = """
if len(HOARD) < 3:
    HOARD.append(subprocess.Popen(["sleep", "3600"]))
    if os.fork() == 0:
        time.sleep(3600)
        os._exit(0)
"""


def run(round: Round) -> None:
    user_code.run_own(round, "forks", DOES)
