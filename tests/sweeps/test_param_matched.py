"""Parameter counts of the parameter-matched table."""

import csv
from importlib import resources

from orch.models import Vocabulary
from orch.sweeps.experiments.param_matched import MATCHED
from orch.tasks import REGISTRY


def test_all_eight_parameter_counts_equal_the_published_ones():
    text = resources.files("orch.analysis").joinpath("published", "param_counts.csv").read_text()
    published = [int(row["parameters"]) for row in csv.DictReader(text.splitlines())]
    task = REGISTRY["modular_addition"](modulus=5)
    vocabulary = Vocabulary(task.vocabulary, task.num_readable)
    assert len(published) == 8
    assert [config.num_parameters(vocabulary) for _, config in MATCHED] == published


def test_matched_settings_are_valid():
    assert [config.problems() for _, config in MATCHED] == [[]] * 8
