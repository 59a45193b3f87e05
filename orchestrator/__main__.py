"""Run the `orch` command, also as `python -m orch`. Signals are handled before the first library is imported."""

import atexit
import sys

from orch.core.interruption import ending_cleanly, hasten, ignore, received, sentence
from orch.core.scratch import remove_own


def run() -> None:
    """Run the `orch` command to the end of this process."""
    atexit.register(ignore)  # what is registered first is called last
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
    hasten(code if isinstance(code, int) else int(code is not None))
    raise SystemExit(code)


if __name__ == "__main__":
    run()
