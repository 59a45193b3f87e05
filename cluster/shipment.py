"""What travels with a job: this project as it stands, edits included, and sweep files of the user's own."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import orch
from orch.running import provenance
from orch.usercode import UserCode

OWN = "own_sweeps"
NOT_NEEDED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def pack(folder: Path, codes: Sequence[UserCode]) -> None:
    """Fill a folder with all that a job needs: it stands first on the path of the sweep and its workers."""
    package = Path(orch.__file__).parent
    shutil.copytree(package, folder / package.name, ignore=NOT_NEEDED)
    for code in codes:
        for name, text in code.files:
            path = folder / place(code).parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def place(code: UserCode) -> Path:
    """Where a sweep file is found by the job. Each has a folder of its own, for the files beside it."""
    return Path(OWN) / code.name / code.file


def environment() -> Mapping[str, str]:
    """For the sweep and its workers: what is no longer known once the files have left their checkout."""
    # Ray starts them through bash, which reads ~/.bashrc in a shell of the first level where Ray itself was started
    # through ssh. A PYTHONPATH there would take the place of the one that leads to what was sent.
    variables = {"SHLVL": "1"}
    commit, edited = provenance.git_state()
    if commit is not None:
        variables[provenance.COMMIT_VARIABLE] = f"{commit}{'+' * bool(edited)}"
    return variables
