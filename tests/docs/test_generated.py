"""Tables in the documentation are what their commands print now: `make tables` writes them anew."""

import importlib.util
from pathlib import Path

import pytest

from orch.analysis import load
from orch.analysis.claims import Verdict, judge_store
from orch.store import Store

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
generated = importlib.util.module_from_spec(specification)
specification.loader.exec_module(generated)
PAGES = [page for page in generated.PAGES if generated.GENERATED.search(page.read_text())]


def test_the_reproduction_is_generated():
    assert {page.name for page in PAGES} >= {"reproduction.md", "tables.md"}


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_table_in_the_documentation_is_what_its_command_prints(page):
    assert page.read_text() == generated.renewed(page.read_text()), "run make tables"


@pytest.mark.thorough
def test_counts_in_sentences_are_those_of_the_results_that_ship():
    text = " ".join((ROOT / "README.md").read_text().split())
    total = load("bundled").reproduction().total
    assert (
        f"{total.num_attempted} of its {total.num_published} test numbers have been attempted on two CPU cores:"
        f" {total.num_within} are within 0.05, {total.num_better} are better, {total.num_worse} are worse"
    ) in text
    near = load("bundled").reproduction(split="validation").total
    assert (
        f"{near.num_attempted} attempted, {near.num_within} within 0.05, {near.num_better} better"
        in (ROOT / "docs" / "reproduction.md").read_text()
    )
    hours = (
        load("bundled").query("SELECT sum(seconds) / 3600 AS hours FROM trials WHERE width = 256")["hours"][0].as_py()
    )
    assert f"{hours:.1f} core-hours of training" in (ROOT / "docs" / "reproduction.md").read_text()
    (laptop,) = judge_store(Store.open("bundled"), "laptop")
    counts = [len(laptop.having(verdict)) for verdict in (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.NOT_ENOUGH)]
    assert f"Of its {sum(counts)} claims" in text
    assert "support {}, contradict {} and leave {} open".format(*counts) in text
    shown = "Claims at laptop scale: {} supported, {} contradicted, {} not enough data".format(*counts)
    assert shown in (ROOT / "docs" / "results.md").read_text()
