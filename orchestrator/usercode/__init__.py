"""User-defined sweeps, models and tasks: `orch sweep my_sweep.py`.

The text of the file is sent to the workers, which need no copy of the file, and is stored with the results. The
revision of a model or task is a hash of the code that it uses (`revision`). Results from before an edit count for
the edited code only if the user says so (`kept`).
"""

from orch.usercode.catalogue import make_catalogue
from orch.usercode.code import UserCode
from orch.usercode.loading import codes_defining
from orch.usercode.naming import NamedSweeps, name_sweeps
from orch.usercode.user_sweep import UserSweep

__all__ = [
    "NamedSweeps",
    "UserCode",
    "UserSweep",
    "codes_defining",
    "make_catalogue",
    "name_sweeps",
]
