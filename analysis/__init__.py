"""Analysis of results and their comparison with the paper. Start with `orch.analysis.load`."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orch.analysis.study import Study


def load(location: str | os.PathLike[str] = "runs") -> "Study":
    """Open the results in a store: a folder, a bucket such as `s3://bucket/runs`, or `bundled`, shipped with orch."""
    from orch.analysis.study import Study  # pyarrow, which light modules of this package do without

    return Study(location)
