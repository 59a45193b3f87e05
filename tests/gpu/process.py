"""Processes for what has to be set before torch or triton is imported: see `simulation.py` and `interpreter.py`."""

import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def reason_to_skip() -> str | None:
    """Return why there can be no such process here; None if there can."""
    if torch.version.cuda is not None:
        return "this build of torch has CUDA of its own, beside which none can be pretended: install torch for CPUs"
    if not sys.platform.startswith("linux"):
        return "the pretended CUDA device is built for Linux only"
    if COMPILER is None:
        return "there is no C++ compiler to build the pretended CUDA device with: install g++ or clang++"
    return None


def build(folder: Path) -> Path:
    """Compile the pretended device."""
    library = folder / "pretend_cuda.so"
    include = Path(torch.__file__).parent / "include"
    subprocess.run(
        [
            *(str(COMPILER), "-shared", "-fPIC", "-std=c++20", "-O0", "-w"),
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            *(f"-I{folder}" for folder in (include, include / "torch/csrc/api/include")),
            *(str(HERE / "pretend_cuda.cpp"), "-o", str(library)),
        ],
        check=True,
    )
    return library


class OtherProcess:
    """Calls functions of a module in a process of its own, where that module runs `serve`."""

    def __init__(self, module: str, *arguments: str, **variables: str):
        """Start the process with these arguments and, beside ours, these environment variables."""
        command = [sys.executable, "-m", module, *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        environment = os.environ | variables
        self._process: Any = subprocess.Popen(command, text=True, cwd=HERE.parents[1], env=environment, **pipes)

    def call(self, function: str, **arguments: Any) -> Any:
        """Call a function; an error there fails the test here, with its traceback."""
        self._process.stdin.write(json.dumps({"function": function, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process ended: its last words are on standard error"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)


def serve(functions: dict[str, Any]) -> None:
    """Answer one request per line of standard input, `{"function": …, "arguments": {…}}`, with one line of JSON."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": functions[request["function"]](**request["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)
