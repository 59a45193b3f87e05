"""Catalogues with sweeps that depend on results."""

import dataclasses

from orch.sweeps.catalogue import BUILT_IN, Catalogue
from orch.sweeps.registry import SWEEPS, Sweep


def catalogue_with(*names: str) -> Catalogue:
    """Return the built-in catalogue and, by each of these names, the sweep of `dependent.py`."""
    sweeps = {name: Sweep(name, "tests.sweeps.dependent") for name in names}
    return dataclasses.replace(BUILT_IN, sweeps={**SWEEPS, **sweeps})
