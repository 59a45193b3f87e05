"""Stand-ins for Mamba's CUDA packages, which a test installs with contents of its own."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orch.models.mamba import scan

PACKAGES = ("mamba_ssm", "causal_conv1d")


@contextmanager
def mamba_packages(folder: Path, monkeypatch: pytest.MonkeyPatch, interface: str) -> Iterator[Callable[..., None]]:
    """Yield a function that installs packages of these names and sources; their scan is in the module `interface`."""

    def install(**sources: str) -> None:
        for name, source in sources.items():
            (folder / name / "ops").mkdir(parents=True)
            (folder / name / "__init__.py").write_text(source)
            (folder / name / "ops/__init__.py").touch()
            (folder / name / "ops/selective_scan_interface.py").write_text(interface)
        monkeypatch.syspath_prepend(str(folder))

    scan._kernels.cache_clear()
    yield install
    scan._kernels.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
