"""A dataset for Hugging Face: Parquet files and a card that names them, for `datasets.load_dataset(folder, "trials")`.

The same folder can be uploaded as it is. Writing it needs no package; reading it needs `datasets`.
"""

from collections.abc import Iterable
from pathlib import Path

from orch.analysis.exports import parquet
from orch.analysis.exports.exporter import ExportedTrial, Exporter
from orch.core.atomic_write import write_atomically
from orch.store.columns import SCHEMAS

_CARD = """---
pretty_name: Results of orch
configs:
- config_name: trials
  default: true
  data_files: trials/*.parquet
- config_name: curves
  data_files: curves/*.parquet
---
# Results of orch

`trials` has a row for each training run: its settings, its accuracy by length, and where it ran. `curves` has a row for
each evaluation during training; `trial_id` joins the two. Accuracies are normalised: 0 is chance, 1 is perfect.

```python
from datasets import load_dataset

trials = load_dataset("path/to/this/folder", "trials", split="train")
```

{tables}
"""


def write(folder: Path, trials: Iterable[ExportedTrial]) -> None:
    """Add Parquet parts with these trials, and write the card."""
    tables = "\n\n".join(_described(table) for table in ("trials", "curves"))
    write_atomically(folder / "README.md", _CARD.format(tables=tables).encode())
    parquet.write(folder, trials)


def _described(table: str) -> str:
    """Return the columns of a table with their descriptions."""
    rows = [f"| {field.name} | {field.type} | {_sentence(field.metadata)} |" for field in SCHEMAS[table]]
    return "\n".join([f"## {table}\n", "| column | type | meaning |", "| --- | --- | --- |", *rows])


def _sentence(metadata: dict[bytes, bytes]) -> str:
    return metadata[b"description"].decode().replace("|", "\\|")


EXPORTER = Exporter(about="a dataset with its card, for load_dataset and the Hub", known=parquet.known, write=write)
