"""The page about models: every model with its settings, and every measured command with what it gave."""

import dataclasses
import json
import shlex
from pathlib import Path

import pytest

from orch.models import REGISTRY
from orch.models.bilinear_family.config import BilinearFamilyConfig
from orch.models.config import ModelConfig
from orch.models.examples import EXAMPLES, SHARED
from tests.command_line import orch

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def model_row(config_type: type[ModelConfig]) -> str:
    family = BilinearFamilyConfig if issubclass(config_type, BilinearFamilyConfig) else ModelConfig
    shared = {field.name for field in dataclasses.fields(family)}
    own = [f"`{field.name}`" for field in dataclasses.fields(config_type) if field.name not in shared]
    return f"| `{config_type.name}` | {config_type.about} | {', '.join(own)} |"


def test_the_page_lists_every_model_with_its_settings():
    page = PAGE.read_text().splitlines()
    assert [line for line in page if line.startswith("| `") and line.count("|") == 4] == [
        model_row(REGISTRY[name]) for name in sorted(REGISTRY)
    ]


def test_the_page_has_every_measured_command_with_its_figures():
    rows = []
    for each in EXAMPLES:
        scores = f"{each.trained:.2f} | {each.at_20:.2f} | {each.at_100:.2f}"
        rows.append(f"| `--model {each.model} {each.options}` | {scores} |")
    page = PAGE.read_text()
    assert [line for line in page.splitlines() if line.startswith("| `--model")] == rows
    assert f"options of `orch train {SHARED}`" in page
    assert {example.model for example in EXAMPLES} <= REGISTRY.keys()


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.model)
def test_a_measured_command_gives_what_is_written(example):
    found = json.loads(orch(*shlex.split(example.command)[1:], "--json").stdout)
    measured = found["validation_accuracy"], found["length_curve"]["20"], found["length_curve"]["100"]
    # Another CPU rounds differently, which training amplifies: at 100 inputs only success is compared.
    assert measured[0] == pytest.approx(example.trained, abs=0.05)
    if example.at_100 > 0.9:
        assert measured[2] > 0.8
