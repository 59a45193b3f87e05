from pathlib import Path

import pytest
import torch

RAY = ("engine/", "cluster/", "analysis/test_report.py")
"""Where the tests stand that start Ray: one at a time, and nothing beside them."""
NOT_RAY = ("cluster/test_check.py", "cluster/test_launcher.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        place = str(item.path.relative_to(here)) if item.path.is_relative_to(here) else ""
        if place.startswith(RAY) and not place.startswith(NOT_RAY):
            item.add_marker(pytest.mark.ray)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)
