"""Results beside the paper's. Begin with `analysis.load`."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.study import Study


def load(location: str | os.PathLike[str] = "runs") -> "Study":
    """The results in a store: a folder, or a bucket such as `s3://bucket/runs`."""
    from analysis.study import Study  # pyarrow, which light modules of this package do without

    return Study(location)
