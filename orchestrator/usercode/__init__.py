"""A sweep of the user's own: `orch sweep my_sweep.py`, with models and tasks of its own.

The text of the file travels: to the workers, which need no such file, and to the store, which keeps it beside what came
of it. The hash of the text is the revision of the models and tasks that it defines.
"""

from orch.usercode.activation import behind, in_use, outdated, use
from orch.usercode.code import UserCode, all_problems

__all__ = ["UserCode", "all_problems", "behind", "in_use", "outdated", "use"]
