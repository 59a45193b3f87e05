"""Results beside the paper's. Begin with `orch.analysis.load`."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orch.analysis.study import Study


def load(location: str | os.PathLike[str] = "runs") -> "Study":
    """The results in a store: a folder, a bucket such as `s3://bucket/runs`, or `bundled`, which came with orch."""
    from orch.analysis.study import Study  # pyarrow, which light modules of this package do without

    return Study(location)
