"""The store of results: append-only Parquet tables in a folder or a bucket. See `store.Store`.

Below the root:
  trials/ curves/ attempts/ withdrawn/   tables, as parts: `<level>/<time>-<random>-<checksum>.parquet` (see `part`)
  superseded/                            later results of trials, out of the way of plain readers of Parquet
  checkpoints/ weights/                  `<trial id>.safetensors`
  drivers/                               `<driver id>.json`
  sweeps/ code/                          requested sweeps, and the user's files that define them: `<digest>.json`
  searches/                              `<search id>/`: the points of a search and their results (see `search.history`)
  logs/                                  texts
  damaged/                               files that could not be read, set aside

Every byte is under a checksum but those of logs, and those of files from before there were checksums: of a part in its
name, of a safetensors file in its header, of a JSON file in front of its value (see `records`).
"""

from orch.store.attempts import Event, Outcome
from orch.store.columns import SCHEMAS
from orch.store.compaction import CompactionReport
from orch.store.credentials import scrub
from orch.store.damaged_files import StoreWarning
from orch.store.store import DEFAULT_STORE, Store
from orch.store.trial_rows import curve_rows, trial_row

__all__ = [
    "DEFAULT_STORE",
    "SCHEMAS",
    "CompactionReport",
    "Event",
    "Outcome",
    "Store",
    "StoreWarning",
    "curve_rows",
    "scrub",
    "trial_row",
]
