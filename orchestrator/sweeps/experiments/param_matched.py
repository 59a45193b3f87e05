"""Appendix table: eight models with about as many parameters each, on three tasks.

Widths and ranks as published; at smaller scales in proportion, and no deeper than the scale allows, where the counts
agree only roughly. Some are models of Table 1, with the same trials.
"""

import dataclasses
from collections.abc import Iterator
from itertools import product

from orch.models import ModelConfig
from orch.models.matched import MATCHED
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import main
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Eight models matched by parameter count"
REPRODUCES = "the appendix table of parameter-matched models"

VARIANT = {"factored": "rank", "block_diagonal": "block_size", "mamba": "layers", "transformer": "layers"}


def models(scale: Scale) -> Iterator[tuple[str, ModelConfig]]:
    for published in MATCHED:
        sizes = {"width": scale.in_proportion(published.width)}
        variant = ""
        if published.name in VARIANT:
            size = getattr(published, VARIANT[published.name])
            variant = str(size)
            if published.name == "factored":
                sizes["rank"] = scale.in_proportion(size)
            elif published.name == "block_diagonal":
                sizes["block_size"] = min(size, sizes["width"])
            else:
                sizes["layers"] = min(size, scale.deepest)
        yield variant, dataclasses.replace(published, **sizes)


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    in_main = {model for _, model in main.models(scale)}
    for task, modulus, (variant, model) in product(main.TASKS, scale.moduli, models(scale)):
        seeds = scale if model in in_main else scale.sparing()
        yield seeds.cell(scale.task(task, modulus), model, variant=variant)
