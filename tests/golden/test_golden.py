"""Numerics may change only with a new revision; otherwise stored results would be mixed with different new ones."""

import json

import pytest

from tests.golden.record import VALUES, cases, measure, revisions

CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_numerics_are_the_recorded_ones_of_this_revision(name):
    recorded = json.loads(VALUES.read_text()).get(name)
    kernel, trial = CASES[name]
    assert recorded is not None, f"{name} has no golden values: run make golden"
    assert recorded["revisions"] == revisions(trial), f"the revision of {name} was raised: run make golden"
    # Other processors round differently; a real change of numerics is far larger.
    assert measure(kernel, trial) == pytest.approx(recorded["values"], rel=1e-4, abs=1e-6), (
        f"the numerics of {name} changed: raise the revision of what changed, then run make golden"
    )
