"""A user's sweep in a file of its own, with models and tasks of its own: `orch sweep my_sweep.py`.

The text of the file travels: to the workers, which need no such file, and to the store, which keeps it beside the
results. The hash of the text is the revision of the models and tasks that it defines.
"""

from orch.usercode.catalogue import make_catalogue, read_sweeps
from orch.usercode.code import UserCode
from orch.usercode.loading import codes_defining
from orch.usercode.user_sweep import UserSweep

__all__ = ["UserCode", "UserSweep", "codes_defining", "make_catalogue", "read_sweeps"]
