"""The origin of a result: versions, commit, host, device and memory. It contains no credentials."""

import functools
import importlib.metadata
import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = (
    "orch",
    "torch",
    "transformers",
    "ray",
    "numpy",
    "numba",
    "safetensors",
    "pyarrow",
    "mamba-ssm",
    "causal-conv1d",
)

COMMIT_VARIABLE = "ORCH_GIT_COMMIT"
"""The variable with the commit of code that was copied here from a checkout; a plus sign marks edited code."""


@functools.cache
def packages() -> str:
    """Return the versions of the packages that can change a result, as JSON."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return json.dumps(versions)


@functools.cache
def git_state() -> tuple[str | None, bool | None]:
    """Return the commit of this code and whether it has been edited since; None for both if it is unknown."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        commit = os.environ.get(COMMIT_VARIABLE, "")
        return commit.rstrip("+") or None, commit.endswith("+") if commit else None

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout

    try:
        return git("rev-parse", "HEAD").strip(), bool(git("status", "--porcelain", "--untracked-files=no").strip())
    except (OSError, subprocess.SubprocessError):
        return None, None


def machine(device: str, threads: int) -> dict[str, Any]:
    """Return the columns of a result that describe the machine."""
    name = device
    torch = sys.modules.get("torch")  # a process that trained on a GPU has imported it
    if device.startswith("cuda") and torch is not None and torch.cuda.is_available():
        name = torch.cuda.get_device_name(device)
    return {"host": socket.gethostname(), "device": name, "threads": threads, "packages": packages()}


def reset_peak_memory() -> None:
    """Reset the peak memory of this process, which trains many units. Where the system cannot, it stays as it is."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory_mb() -> float | None:
    """Return the peak memory of this process since the last reset; None where the system does not report it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return None if line is None else int(line.split()[1]) / 1024
