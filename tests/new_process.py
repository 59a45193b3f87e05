"""Running Python in a new process, which has imported nothing yet."""

import subprocess
import sys
from pathlib import Path


def run_python(program: str, folder: Path | None = None) -> str:
    """Run a program in a new process, and return what it printed; warnings on stderr are an error."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def modules_imported(program: str, names: set[str], folder: Path | None = None) -> set[str]:
    """Return those of the modules `names` that a program imports."""
    output = run_python(f"{program}\nimport sys\nprint(*{names!r} & set(sys.modules))", folder)
    return set(output.splitlines()[-1].split())


def command_imports(arguments: list[str], names: set[str], folder: Path | None = None) -> set[str]:
    """Return those of the modules `names` that an `orch` command imports."""
    program = f"from orch.cli import main\ntry:\n    main({arguments!r})\nexcept SystemExit:\n    pass"
    return modules_imported(program, names, folder)
