"""Files in the safetensors format that are written without a copy, and read by the library."""

import pytest
import torch
from safetensors.torch import load, save

from orch.core.errors import InvalidSettings
from orch.training.safetensors_pieces import DTYPES, safetensors_pieces


def test_a_file_of_floats_is_byte_for_byte_the_librarys():
    tensors = {name: torch.randn(3, 5) for name in ("second/ß", "first/a", "parameters/b")} | {"scalar": torch.ones(())}
    assert b"".join(safetensors_pieces(tensors, {"orch": '{"x": 1}'})) == save(tensors, {"orch": '{"x": 1}'})


def test_every_type_and_shape_is_read_back_by_the_library():
    tensors = {str(dtype): torch.arange(3).to(dtype) for dtype in DTYPES}
    tensors |= {"empty": torch.empty(0, 4), "scalar": torch.tensor(2.5), "strided": torch.randn(4, 6)[:, ::2].T}
    found = load(b"".join(safetensors_pieces(tensors, {})))
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name


def test_pieces_are_the_memory_of_the_tensors():
    tensor = torch.zeros(4)
    *_, piece = safetensors_pieces({"x": tensor}, {})
    tensor.fill_(1)
    assert bytes(piece) == bytes(torch.ones(4).numpy())


def test_a_type_that_the_format_lacks_is_named():
    with pytest.raises(InvalidSettings, match="buffer consists of complex128 numbers, which a checkpoint cannot hold"):
        safetensors_pieces({"buffer": torch.zeros(2, dtype=torch.complex128)}, {})
