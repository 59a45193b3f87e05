"""What docs/gpu.md says about installing on a machine with GPUs is what the project's own script installs."""

import re
import subprocess
import tomllib
from pathlib import Path

from tests.docs.test_examples import BLOCK, ROOT

PAGE = ROOT / "docs" / "gpu.md"
WHEELS = re.compile(r"https://\S+\.whl")
PIP = """#!/bin/sh
for word in "$@"; do echo "$word"; done >> {log}
"""


def test_the_commands_run_as_shown_and_name_the_wheels_of_the_set_up(tmp_path: Path):
    """The commands are run by a shell, with a stand-in for pip that notes what it was asked for."""
    (tmp_path / "pip").write_text(PIP.format(log=tmp_path / "log"))
    (tmp_path / "pip").chmod(0o755)
    shown = [body for language, body in BLOCK.findall(PAGE.read_text()) if language == "bash" and "pip" in body]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["bash", "-eu"], input="\n".join(shown), text=True, env=environment, check=True)
    asked = (tmp_path / "log").read_text().splitlines()
    wheels = WHEELS.findall((ROOT / "cluster" / "setup.sh").read_text())
    assert asked == ["install", ".[gpu]", "install", "--no-deps", *wheels]


def test_the_extra_needs_no_package_that_is_compiled_while_it_is_installed():
    """pip builds in an environment of its own, in which mamba-ssm and causal-conv1d do not find torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["gpu"]]
    names = {re.split(r"[^\w-]", each)[0] for each in listed}
    assert not names & {"mamba-ssm", "mamba_ssm", "causal-conv1d", "causal_conv1d", "flash-attn"}
