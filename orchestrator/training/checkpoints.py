"""Files of trained models and unfinished trials: safetensors, with everything but the tensors as JSON in the header.

Each is written atomically, so that a crash leaves the old file or the new one. Pickle is not used, because reading a
pickle runs the code in it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from orch.core.atomic_write import write_atomically
from orch.core.errors import DamagedFile
from orch.models.network import Network
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.result import CurvePoint, Result
from orch.sweeps.trial import Trial
from orch.training.train import Snapshot


def save_model(path: str | Path, result: Result) -> None:
    """Save the trained weights, with the trial and its scores."""
    _write(path, result.parameters, _model_header(result))


def load_model(path: str | Path, definitions: Definitions = BUILT_IN_DEFINITIONS) -> tuple[Network, Trial]:
    """Load a trained network, ready to evaluate, and the trial it was trained in.

    It maps tokens (1, B, T) and the position of each [EOI] (1, B) to logits (1, B, V): see `orch.tasks.sampling`.
    """
    return _model(*_read(path, needs=("trial", "result")), definitions)


def save_snapshot(path: str | Path, snapshot: Snapshot) -> None:
    """Save an unfinished trial."""
    _write(path, *_snapshot_parts(snapshot))


def load_snapshot(path: str | Path, definitions: Definitions = BUILT_IN_DEFINITIONS) -> Snapshot:
    """Load an unfinished trial."""
    return _snapshot(*_read(path, needs=("trial", "step")), definitions)


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """Return a snapshot as bytes, for a store."""
    tensors, header = _snapshot_parts(snapshot)
    return save(_contiguous(tensors), _metadata(header))


def parse_snapshot(data: bytes, name: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> Snapshot:
    """Return the snapshot that `snapshot_bytes` encoded. If the bytes are damaged, the error calls them `name`."""
    try:
        return _snapshot(*_parts(data), definitions)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{name} is damaged ({error}): delete it and train again") from error


def model_bytes(result: Result) -> bytes:
    """Return a trained model as bytes, for a store."""
    return save(_contiguous(result.parameters), _metadata(_model_header(result)))


def parse_model(data: bytes, name: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> tuple[Network, Trial]:
    """Return the network and the trial that `model_bytes` encoded; an error about damage calls the bytes `name`."""
    try:
        tensors, header = _parts(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{name} is damaged ({error}): delete it and train again") from error
    return _model(tensors, header, definitions)


def _model(tensors: Mapping[str, Tensor], header: Mapping[str, Any], definitions: Definitions) -> tuple[Network, Trial]:
    trial = Trial.from_dict(header["trial"], definitions)
    network = trial.model.network()(trial.model, trial.vocabulary, [tensors])
    return network.eval(), trial


def _parts(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    size = int.from_bytes(data[:8], "little")
    return load(data), json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["orch"])


def _model_header(result: Result) -> dict[str, Any]:
    return {"trial": result.trial.to_dict(), "result": result.summary()}


def _snapshot_parts(snapshot: Snapshot) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors = {
        f"{kind}/{name}": tensor
        for kind in ("parameters", "first", "second")
        for name, tensor in getattr(snapshot, kind).items()
    }
    header = {
        "trial": snapshot.trial.to_dict(),
        "step": snapshot.step,
        "seconds": snapshot.seconds,
        "curve": [asdict(point) for point in snapshot.curve],
    }
    return tensors, header


def _snapshot(tensors: Mapping[str, Tensor], header: Mapping[str, Any], definitions: Definitions) -> Snapshot:
    kinds: dict[str, dict[str, Tensor]] = {"parameters": {}, "first": {}, "second": {}}
    for key, tensor in tensors.items():
        kind, _, name = key.partition("/")
        kinds[kind][name] = tensor
    return Snapshot(
        trial=Trial.from_dict(header["trial"], definitions),
        step=header["step"],
        seconds=header["seconds"],
        curve=[CurvePoint(**point) for point in header["curve"]],
        **kinds,
    )


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _metadata(header: Mapping[str, Any]) -> dict[str, str]:
    return {"orch": json.dumps(header)}


def _write(path: str | Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    write_atomically(Path(path), save(_contiguous(tensors), _metadata(header)), durable=True)


def _read(path: str | Path, needs: tuple[str, ...]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("orch", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except FileNotFoundError:
        raise DamagedFile(f"there is no file {path}: check the name, or train and save it first") from None
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        raise DamagedFile(
            f"{path} is damaged or not a safetensors file ({error}): delete it and train again"
        ) from error
    if any(name not in header for name in needs):
        raise DamagedFile(f"{path} does not hold a {needs[-1]} saved by orch: check the name")
    return tensors, header
