"""What kernels take on an A100, as its assembler says: compiled for it here, run nowhere."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

A100 = GPUTarget("cuda", 80, 32)


@dataclass(frozen=True)
class Resources:
    registers: int
    """Of one thread; 255 is the most that there are."""
    spilled: int
    """Bytes that a thread writes to memory because registers are short."""
    shared: int
    """Bytes of shared memory of a program; 163 KB is the most."""


def compile_for_a100(kernel: Any, **arguments: Any) -> Resources:
    """Compile a kernel.

    Arguments are a type such as "*fp32", "*i64" or "i32" for what is given at a launch, and values for `tl.constexpr`.
    `num_warps`, `num_stages` and `maxnreg` are those of the launch. Pointers are taken to be aligned to 16 bytes, as
    torch's are.
    """
    launch = {name: arguments.pop(name) for name in ("num_warps", "num_stages", "maxnreg") if name in arguments}
    constants = {p.name for p in kernel.params if p.is_constexpr}
    assert set(arguments) == {p.name for p in kernel.params}, "the arguments are not those of the kernel"
    signature = {name: "constexpr" if name in constants else value for name, value in arguments.items()}
    names = [p.name for p in kernel.params]
    source = ASTSource(
        fn=kernel,
        signature={name: signature[name] for name in names},
        constexprs={(names.index(name),): arguments[name] for name in constants},
        attrs={
            (place,): [["tt.divisibility", 16]]
            for place, name in enumerate(names)
            if name not in constants and arguments[name].startswith("*")
        },
    )
    compiled = triton.compile(source, target=A100, options=launch | {"enable_fp_fusion": True})
    return Resources(*_assemble(compiled.asm["ptx"]), compiled.metadata.shared)


def _assemble(ptx: str) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        command = [get_ptxas(80).path, "-v", "--gpu-name=sm_80", str(path), "-o", str(Path(folder) / "kernel.cubin")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.search(r"(\d+) bytes spill stores.*Used (\d+) registers", said, re.DOTALL)
    assert found, said
    return int(found[2]), int(found[1])
