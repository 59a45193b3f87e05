"""Trained models and unfinished trials as safetensors, with everything but the tensors as JSON in the header.

Files are written atomically, so that a crash leaves the old file or the new one. Pickle is not used, because reading a
pickle runs the code in it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from orch.core.atomic_write import write_atomically
from orch.core.errors import DamagedFile
from orch.core.reading import read_bytes
from orch.core.safetensors_header import NO_CHECKSUM, is_checked, orch_header, with_checksum
from orch.core.shape import problems
from orch.models.kernel import PLAIN
from orch.models.network import Network
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.result import CurvePoint, Result
from orch.sweeps.trial import Trial, TrialConfig
from orch.training.safetensors_pieces import safetensors_pieces
from orch.training.snapshot import Snapshot

MOST_BYTES = 1 << 36
"""Largest file of weights or of an unfinished trial that is read."""
_STATES = ("parameters", "first", "second")
"""The fields of a `Snapshot` that consist of tensors."""


def save_model(path: str | Path, result: Result) -> None:
    """Save the trained weights, with the trial and its scores."""
    write_atomically(Path(path), model_bytes(result), durable=True)


def load_model(path: str | Path, definitions: Definitions = BUILT_IN_DEFINITIONS) -> tuple[Network, Trial]:
    """Load a trained network, ready to evaluate, and the trial it was trained in.

    It maps tokens (1, B, T) and the position of each [EOI] (1, B) to logits (1, B, V): see `orch.tasks.sampling`.
    """
    return parse_model(_read(path), str(path), definitions)


def save_snapshot(path: str | Path, snapshot: Snapshot) -> None:
    """Save an unfinished trial."""
    write_atomically(Path(path), snapshot_pieces(snapshot), durable=True)


def load_snapshot(path: str | Path, definitions: Definitions = BUILT_IN_DEFINITIONS) -> Snapshot:
    """Load an unfinished trial."""
    return parse_snapshot(_read(path), str(path), definitions)


def model_bytes(result: Result) -> bytes:
    """Return a trained model as bytes, for a store."""
    return b"".join(_encode(result.parameters, {"trial": result.trial.to_dict(), "result": result.summary()}))


def parse_model(data: bytes, name: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> tuple[Network, Trial]:
    """Return the network and the trial that `model_bytes` encoded. Errors about the bytes call them `name`."""
    tensors, header = _decode(data, name, needs=("trial", "result"))
    trial = Trial.from_dict(header["trial"], definitions)
    try:
        network = trial.model.network()(trial.model, trial.vocabulary, [tensors])
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DamagedFile(f"{name} is damaged ({error}): delete it and train again") from error
    return network.eval(), trial


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """Return a snapshot as bytes."""
    return b"".join(snapshot_pieces(snapshot))


def snapshot_pieces(snapshot: Snapshot) -> list[bytes | memoryview]:
    """Return a snapshot as pieces of bytes, for a store. The tensors are not copied: they must stay as they are."""
    tensors = {f"{kind}/{name}": tensor for kind in _STATES for name, tensor in getattr(snapshot, kind).items()}
    header = {
        "trial": snapshot.trial.to_dict(),
        "step": snapshot.step,
        "seconds": snapshot.seconds,
        "curve": [asdict(point) for point in snapshot.curve],
        "kernel": snapshot.kernel,
        "losses": snapshot.losses,
    }
    return _encode(tensors, header)


def parse_snapshot(data: bytes, name: str, definitions: Definitions = BUILT_IN_DEFINITIONS) -> Snapshot:
    """Return the snapshot that `snapshot_bytes` encoded. Errors about the bytes call them `name`."""
    tensors, header = _decode(data, name, needs=("trial", "step"))
    states: dict[str, dict[str, Tensor]] = {kind: {} for kind in _STATES}
    try:
        for key, tensor in tensors.items():
            kind, _, parameter = key.partition("/")
            states[kind][parameter] = tensor
        return Snapshot(
            trial=Trial.from_dict(header["trial"], definitions),
            step=header["step"],
            seconds=header["seconds"],
            curve=[CurvePoint(**point) for point in header["curve"]],
            kernel=header.get("kernel", PLAIN),  # absent in checkpoints from before there were others
            losses=header.get("losses", []),  # absent in checkpoints from before they were kept
            **states,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{name} is damaged ({error}): delete it and train again") from error


def _encode(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> list[bytes | memoryview]:
    return with_checksum(safetensors_pieces(tensors, NO_CHECKSUM | {"orch": json.dumps(header)}))


def _decode(data: bytes, name: str, needs: tuple[str, str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        is_checked([data])
        tensors = load(data)
        header = orch_header(data)
    except (SafetensorError, ValueError) as error:
        raise DamagedFile(
            f"{name} is damaged or not a safetensors file ({error}): delete it and train again"
        ) from error
    if any(key not in header for key in needs):
        raise DamagedFile(f"{name} contains no {needs[-1]} saved by orch: check the name")
    if wrong := next(problems(header["trial"], TrialConfig, "trial"), None):
        raise DamagedFile(f"{name} is damaged ({wrong}): delete it and train again")
    return tensors, header


def _read(path: str | Path) -> bytes:
    try:
        return read_bytes(path, MOST_BYTES)
    except FileNotFoundError:
        raise DamagedFile(f"there is no file {path}: check the name, or train and save it first") from None
    except (OSError, ValueError) as error:
        raise DamagedFile(f"{path} cannot be read ({error}): check the name") from error
