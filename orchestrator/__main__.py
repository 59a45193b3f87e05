"""Run the `orch` command, also as `python -m orch`. Signals are handled before the first library is imported."""

import atexit
import os
import sys

from orch.core.interruption import ending_cleanly, hasten, ignore, received, sentence
from orch.core.scratch import remove_own


def run() -> None:
    """Run the `orch` command to the end of this process."""
    atexit.register(ignore)  # what is registered first is called last
    _open_standard_files()
    code: object = 0
    try:
        with ending_cleanly():
            from orch.cli import main

            main(prog_name="orch")
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        if (number := received()) is None:
            raise
        print(sentence(number), file=sys.stderr)
        code = 128 + number
    remove_own()  # what an interrupted context could not remove
    try:
        sys.stdout.flush()
    except OSError:  # it was told already, and Python would try again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    hasten(code if isinstance(code, int) else int(code is not None))
    raise SystemExit(code)


def _open_standard_files() -> None:
    """Open what this process was started without (`>&-`): a file that is opened would else take the place of output."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    run()
