"""Kernels of Triton run on CPU tensors, by its interpreter. Needs TRITON_INTERPRET=1 before triton is imported."""

import os

assert os.environ.get("TRITON_INTERPRET") == "1", "the interpreter is chosen when a kernel is defined"

from triton.runtime import interpreter  # noqa: E402

_patch = interpreter._patch_lang_tensor


def _patch_with_loops(tensor, scope):
    """Let a number that is an argument of a kernel bound a loop, which triton 3.6 cannot do with numpy 2.4."""
    _patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = _patch_with_loops
