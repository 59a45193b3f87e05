"""The files shipped with a job: this copy of the project, local edits included, and the user's sweep files."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import orch
from orch.core.errors import InvalidSettings
from orch.running import provenance
from orch.usercode import UserCode

USER_SWEEPS = "user_sweeps"
NOT_NEEDED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def pack(folder: Path, codes: Sequence[UserCode]) -> None:
    """Fill a folder, which comes first on the import path of the sweep and its workers, with everything a job needs."""
    package = Path(orch.__file__).parent
    shutil.copytree(package, folder / package.name, ignore=NOT_NEEDED)
    for code in codes:
        for name, text in code.files:
            beside = (folder / place(code).parent).resolve()
            path = (beside / name).resolve()
            if not path.is_relative_to(beside):
                raise InvalidSettings([f"{name} of {code.file} is outside its folder: put it beside the file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def place(code: UserCode) -> Path:
    """Return the path of a sweep file within the shipped folder. Each sweep has its own folder."""
    return Path(USER_SWEEPS) / code.name / code.file


def environment() -> Mapping[str, str]:
    """Build the environment variables of the job, such as the commit, which is not in the shipped files."""
    # Where Ray was started through ssh, it starts jobs in a top-level bash, which reads ~/.bashrc. A PYTHONPATH set
    # there would replace the one that leads to the shipped files; SHLVL=1 keeps bash from reading it.
    variables = {"SHLVL": "1"}
    commit, edited = provenance.git_state()
    if commit is not None:
        variables[provenance.COMMIT_VARIABLE] = f"{commit}{'+' * bool(edited)}"
    return variables
