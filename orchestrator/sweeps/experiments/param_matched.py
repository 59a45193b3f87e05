"""Appendix table: eight models with about as many parameters each, on three tasks.

Parameters are matched at modulus 5 of modular addition. Widths and ranks are the published ones at paper scale; at
smaller scales they shrink in proportion, models are no deeper than the scale allows, and counts agree only roughly.
Some of the models are in Table 1, and share their trials with it.
"""

import dataclasses
from collections.abc import Iterator
from itertools import product

from orch.core.settings import to_dict
from orch.models import ModelConfig
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import main
from orch.sweeps.scales import PAPER, Scale
from orch.sweeps.selection import Results

TITLE = "Eight models matched by parameter count"
REPRODUCES = "the appendix table of parameter-matched models"

MATCHED: tuple[tuple[str, ModelConfig], ...] = (
    ("", PAPER.model("bilinear", width=80)),
    ("700", PAPER.model("factored", width=256, rank=700)),
    ("32", PAPER.model("block_diagonal", width=128, block_size=32)),
    ("8", PAPER.model("block_diagonal", width=256, block_size=8)),
    ("", PAPER.model("lstm", width=256)),
    ("", PAPER.model("rnn", width=512)),
    ("4", PAPER.model("mamba", width=128, layers=4)),
    ("4", PAPER.model("transformer", width=96, layers=4, heads=4)),
)
"""Published models, each with the name of its variant."""


def at_scale(published: ModelConfig, scale: Scale) -> ModelConfig:
    """Shrink a published model to a scale."""
    settings, width = to_dict(published), scale.in_proportion(published.width)
    sizes = {"width": width}
    if "rank" in settings:
        sizes["rank"] = scale.in_proportion(settings["rank"])
    if "block_size" in settings:
        sizes["block_size"] = min(settings["block_size"], width)
    if "layers" in settings:
        sizes["layers"] = min(settings["layers"], scale.deepest)
    return dataclasses.replace(published, **sizes)


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    in_main = {model for _, model in main.models(scale)}
    for task, modulus, (variant, published) in product(main.TASKS, scale.moduli, MATCHED):
        model = at_scale(published, scale)
        seeds = scale if model in in_main else scale.sparing()
        yield seeds.cell(scale.task(task, modulus), model, variant=variant)
