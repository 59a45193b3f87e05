#!/usr/bin/env bash
# Starts NVIDIA's MPS on this machine, once: packs that share a GPU (--gpus-per-trial 0.5) then run at the same time, and
# in turns without it. Machines without a GPU or without MPS stay as they are.
set -euo pipefail
command -v nvidia-cuda-mps-control > /dev/null && nvidia-smi > /dev/null 2>&1 || exit 0
# A daemon that runs answers; its pipes are in $CUDA_MPS_PIPE_DIRECTORY, /tmp/nvidia-mps by default.
echo get_server_list | timeout 10 nvidia-cuda-mps-control > /dev/null 2>&1 || nvidia-cuda-mps-control -d
