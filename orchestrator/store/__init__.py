"""The store of results: append-only Parquet tables in a folder or a bucket. See `store.Store`.

Below the root:
  trials/ curves/ attempts/ withdrawn/   tables, as parts: `<level>/<time>-<random>.parquet` (see `part`)
  checkpoints/ weights/                  `<trial id>.safetensors`
  drivers/                               `<driver id>.json`
  sweeps/ code/                          what was asked for, and files of the user's that ask: `<digest>.json`
  searches/                              `<search id>/`: what a search asked and was told (see `search.history`)
  logs/                                  texts
  damaged/                               parts that could not be read, set aside
"""

from orchestrator.store.attempt import Event, Outcome
from orchestrator.store.columns import SCHEMAS
from orchestrator.store.compaction import CompactionReport
from orchestrator.store.credentials import scrub
from orchestrator.store.rows import curve_rows, trial_row
from orchestrator.store.shelf import StoreWarning
from orchestrator.store.store import DEFAULT_STORE, Store

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
