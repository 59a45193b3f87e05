#!/usr/bin/env bash
# Every machine of a cluster runs this once: the folder above gets a .venv with one set of versions that fit together.
# The set: mamba-ssm publishes wheels for torch 2.10 and nothing newer (November 2026), and the torch 2.10 of PyPI brings
# CUDA 12.8 with it. All packages are published wheels, so the machine needs only NVIDIA's driver, and a C compiler with
# Python's headers, with which triton builds its launchers: without them models run plain kernels.
# Not verified: nobody has run this set on a GPU yet (`orch doctor` does). Edit Ray and Python to match the machine that
# runs `ray up`, and cp311 with Python: `orch cluster check` compares.
# `bash cluster/setup.sh cpu` installs the same set for machines without a GPU, without CUDA and its gigabytes.
set -euo pipefail
backend=()
[ "${1:-cuda}" = cuda ] || backend=(--torch-backend cpu)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$HOME/.local/bin:$PATH
command -v uv > /dev/null || curl -LsSf https://astral.sh/uv/0.13.7/install.sh | sh
.venv/bin/python --version 2> /dev/null | grep -qF 'Python 3.11.' || uv venv --clear --python 3.11
grep -v '^torch=' constraints.txt > .venv/constraints.txt
uv pip install "${backend[@]}" --constraint .venv/constraints.txt --editable . 'ray[default,tune]==2.60.0' 'torch==2.10.0' boto3 einops
[ "${1:-cuda}" = cuda ] || exit 0
uv pip install --no-deps \
  https://github.com/state-spaces/mamba/releases/download/v2.3.2.post1/mamba_ssm-2.3.2.post1+cu12torch2.10cxx11abiTRUE-cp311-cp311-linux_x86_64.whl \
  https://github.com/Dao-AILab/causal-conv1d/releases/download/v1.6.2.post1/causal_conv1d-1.6.2.post1+cu12torch2.10cxx11abiTRUE-cp311-cp311-linux_x86_64.whl
