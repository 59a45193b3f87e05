"""Run the `orch` command, also as `python -m orch`. Signals are handled before the first library is imported."""

import sys

from orch.core.interruption import Interrupted, ending_cleanly, hasten
from orch.core.scratch import remove_own


def run() -> None:
    """Run the `orch` command to the end of this process."""
    code: object = 0
    try:
        with ending_cleanly():
            from orch.cli import main

            main(prog_name="orch")
    except Interrupted as interrupted:
        print(interrupted, file=sys.stderr)
        code = 128 + interrupted.number
    except SystemExit as ended:
        code = ended.code
    remove_own()  # what an interrupted context could not remove
    hasten(code if isinstance(code, int) else int(code is not None))
    raise SystemExit(code)


if __name__ == "__main__":
    run()
