"""Run the `orch` command as `python -m orch`."""

from orch.cli import main

if __name__ == "__main__":
    main(prog_name="orch")
