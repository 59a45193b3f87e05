"""Registers and shared memory of every kernel on an A100, compiled with the block sizes of the paper's models."""

from typing import Any

import pytest

pytest.importorskip("triton", reason="triton is not installed: pip install triton, on Linux")

from orch.models.gpu_kernels import (
    adam,
    block_scan,
    convolution,
    division,
    factors,
    gates,
    grouped_scan,
    rms_norm,
    rotation,
    selective_scan,
    token_groups,
    token_sums,
)
from tests.gpu.resources import compile_for_a100

pytestmark = pytest.mark.thorough

BATCH, WIDTH, FEW_TOKENS, MANY_TOKENS = 64, 256, 7, 52
SMALL = {b: block_scan.tile_options(b, WIDTH // b) for b in (1, 2, 4, 8)}
ALL_OPTIONS = {"EVERY_STEP": True, "ADDITIVE": True, "KIND": "rms"}
READ = {
    (b, R): {"SIZE": b, "BLOCKS": WIDTH // b, "KIND": "rms"} | grouped_scan.read_options(BATCH, R, b)
    for b in (64, 256)
    for R in (FEW_TOKENS, MANY_TOKENS)
}
ADAM = {"LOG_BETA1": -0.1, "LOG_BETA2": -0.001, "BETA2": 0.999, "NEW1": 0.1, "NEW2": 0.001, "EPSILON": 1e-8}

KERNELS: dict[str, tuple[Any, dict[str, Any], int, int]] = {
    **{
        f"scan of blocks of {b}, forward": (
            block_scan.forward_kernel, SMALL[b] | ALL_OPTIONS | {"KEEP": True}, registers, 512
        )
        for b, registers in ((1, 56), (2, 56), (4, 80), (8, 120))
    },
    **{
        f"scan of blocks of {b}, backward": (block_scan.backward_kernel, SMALL[b] | ALL_OPTIONS, registers, 512)
        for b, registers in ((1, 64), (2, 64), (4, 96), (8, 128))
    },
    **{
        f"gradient of blocks of {b}, {R} tokens": (
            block_scan.products_kernel, block_scan.products_options(R, b, WIDTH // b), registers, 21_000
        )
        for b in (1, 2, 4, 8)
        for R, registers in ((FEW_TOKENS, 64), (MANY_TOKENS, 96))
    },
    **{
        f"position of blocks of {b}, {R} tokens, forward": (
            grouped_scan.forward_kernel, READ[b, R] | {"ADDITIVE": True, "KEEP": True}, 96, 2_048
        )
        for b, R in READ
    },
    **{
        f"position of blocks of {b}, {R} tokens, backward": (grouped_scan.backward_kernel, READ[b, R], 120, 4_096)
        for b, R in READ
    },
    **{
        f"gradient of blocks of {b}": (
            grouped_scan.products_kernel,
            {"SIZE": b, "BLOCKS": WIDTH // b} | grouped_scan.products_options(b),
            128,
            8_400,
        )
        for b in (64, 256)
    },
    **{
        f"division of blocks of {b}, {way}": (kernel, division.division_options(b, WIDTH, "rms", True), 40, 0)
        for b in (64, 256)
        for way, kernel in (("forward", division.divide_kernel), ("backward", division.divide_back_kernel))
    },
    **{
        f"LSTM, {way}": (kernel, {"FIRST": False, "BLOCK": WIDTH}, registers, 1_024)
        for way, kernel, registers in (
            ("forward", gates.lstm_forward_kernel, 40),
            ("backward", gates.lstm_backward_kernel, 48),
        )
    },
    "RNN, forward": (gates.elman_forward_kernel, {"FIRST": False, "BLOCK": WIDTH}, 32, 0),
    "RNN, backward": (gates.elman_backward_kernel, {"BLOCK": WIDTH}, 32, 0),
    "gates of factors, forward": (factors.gate_kernel, {"BLOCK": WIDTH}, 32, 0),
    "gates of factors, backward": (factors.gate_back_kernel, {"BLOCK": WIDTH}, 32, 0),
    "state of factors, forward": (
        factors.finish_kernel, {"WIDTH": WIDTH, "KIND": "rms", "ADDS": True, "BLOCK": WIDTH}, 32, 1_024
    ),
    "state of factors, backward": (
        factors.finish_back_kernel, {"WIDTH": WIDTH, "KIND": "rms", "BLOCK": WIDTH}, 32, 1_024
    ),
    "norm, forward": (rms_norm.forward_kernel, rms_norm.norm_options(WIDTH) | {"EPSILON": 1e-5}, 40, 1_024),
    "norm, backward": (rms_norm.backward_kernel, rms_norm.norm_options(WIDTH) | {"EPSILON": 1e-5}, 64, 2_048),
    "convolution, forward": (convolution.forward_kernel, convolution.convolution_options(4), 40, 2_048),
    "convolution, backward": (convolution.backward_kernel, convolution.convolution_options(4), 64, 2_048),
    **{
        f"selective scan, forward, {'at the end' if at_end else 'everywhere'}": (
            selective_scan.forward_kernel, selective_scan.scan_options(16, at_end) | {"KEEP": True}, 96, 128
        )
        for at_end in (False, True)
    },
    **{
        f"selective scan, backward, {'at the end' if at_end else 'everywhere'}": (
            selective_scan.backward_kernel, selective_scan.scan_options(16, at_end), 224, 128
        )
        for at_end in (False, True)
    },
    "groups of tokens": (token_groups.groups_kernel, token_groups.groups_options(BATCH), 32, 16),
    "sums by token": (token_sums.sums_kernel, token_sums.sums_options(MANY_TOKENS, WIDTH), 152, 12_800),
    "Adam": (adam.adam_kernel, ADAM | adam.adam_options(WIDTH), 64, 0),
    "rotations, forward": (rotation.rotations_kernel, {"ANGLES": 128}, 32, 0),
    "rotations, backward": (rotation.rotations_back_kernel, {"ANGLES": 128}, 32, 0),
}  # fmt: skip
"""Kernels by name, each with its constants and the most registers and bytes of shared memory that it may take."""
TYPES = {
    **dict.fromkeys(("tokens", "end"), "*i64"),
    **dict.fromkeys(("order", "start"), "*i32"),
    **dict.fromkeys(("R", "T", "B", "G", "D", "H", "F", "P", "Q", "t", "n", "outputs", "num_samples", "width"), "i32"),
}
"""Types of arguments by name. Names with `stride` in them are numbers; all others are pointers to numbers."""


def type_of(name: str) -> str:
    return TYPES.get(name, "i32" if "stride" in name else "*fp32")


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_compiles_for_an_a100_without_spills_and_within_its_ceilings(name):
    kernel, options, registers, shared = KERNELS[name]
    given = [parameter.name for parameter in kernel.params if not parameter.is_constexpr]
    found = compile_for_a100(kernel, **{each: type_of(each) for each in given}, **options)
    assert found.spilled == 0, found
    assert found.registers <= registers, found
    assert found.shared <= shared, found


@pytest.mark.parametrize("kind", ["none", "unit", "rms", "block"])
@pytest.mark.parametrize("every_step", [False, True])
def test_no_normalisation_spills_registers(kind, every_step):
    options = SMALL[8] | {"KIND": kind, "EVERY_STEP": every_step, "ADDITIVE": True}
    for kernel, more in ((block_scan.forward_kernel, {"KEEP": True}), (block_scan.backward_kernel, {})):
        given = [parameter.name for parameter in kernel.params if not parameter.is_constexpr]
        found = compile_for_a100(kernel, **{each: type_of(each) for each in given}, **options, **more)
        assert found.spilled == 0, found
