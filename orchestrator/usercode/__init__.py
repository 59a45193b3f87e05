"""User-defined sweeps, models and tasks: `orch sweep my_sweep.py`.

The text of the file is sent to the workers, which need no copy of the file, and is stored with the results. The
hash of the text is the revision of the models and tasks that it defines.
"""

from orch.usercode.catalogue import make_catalogue, read_sweeps
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
    "read_sweeps",
]
