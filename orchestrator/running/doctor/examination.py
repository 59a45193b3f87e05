"""All checks of a worker's machine, one after the other."""

import functools
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from orch import models
from orch.core.errors import OrchError
from orch.running.doctor import gradients, steps
from orch.running.doctor.examined_trials import published, small
from orch.running.doctor.finding import CheckState, Failed, Finding, Skipped
from orch.running.doctor.mamba_kernels import check_mamba_kernels
from orch.running.doctor.timing import Timing
from orch.store import Store
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions

RATE_SECONDS = 2.0
"""Time for which the training steps of each size of pack are timed."""

Check = tuple[str, Callable[[], str]]


def examine(
    store_uri: str,
    device: str,
    rate_seconds: float = RATE_SECONDS,
    names: Sequence[str] = tuple(sorted(models.REGISTRY)),
    definitions: Definitions = BUILT_IN_DEFINITIONS,
) -> Iterator[Finding]:
    """Run all checks of the models `names` of `definitions` in this process, and yield two findings of each.

    The first says that the check is running and how many there are, the second is its outcome.
    """
    listed = checks(store_uri, device, rate_seconds, names, definitions)
    for number, (name, check) in enumerate(listed, start=1):
        yield Finding(name, CheckState.RUNNING, f"{number} of {len(listed)}", 0.0)
        started = time.monotonic()
        try:
            state, detail = CheckState.PASS, check()
        except Skipped as reason:
            state, detail = CheckState.SKIPPED, str(reason)
        except Exception as error:  # every error is a finding, and the other checks continue
            told = isinstance(error, (Failed, OrchError))
            message = str(error) if told else f"{type(error).__name__}: {error}"
            state, detail = CheckState.FAIL, " ".join(message.split())
        yield Finding(name, state, detail, time.monotonic() - started)


def checks(
    store_uri: str, device: str, rate_seconds: float, names: Sequence[str], definitions: Definitions
) -> list[Check]:
    timing = Timing(store_uri, device, rate_seconds, definitions)

    def of_each(what: str, check: Callable[[str], str]) -> list[Check]:
        return [(f"{name}: {what}", functools.partial(check, name)) for name in names]

    def check_gradients(name: str) -> str:
        trials = (small(name, definitions), gradients.STEPS), (published(name, definitions), gradients.FEWER_STEPS)
        return gradients.compare_with_double(trials, device)

    def check_pack(name: str) -> str:
        trials = (small(name, definitions), steps.STEPS), (published(name, definitions), steps.FEWER_STEPS)
        return steps.compare_pack(trials, device)

    def check_checkpoint(name: str) -> str:
        return steps.compare_resumed(small(name, definitions), device, definitions)

    def check_recorded(name: str) -> str:
        return steps.compare_recorded(small(name, definitions), device)

    mamba = [("mamba: mamba_ssm against ours", lambda: check_mamba_kernels(device))] if "mamba" in names else []
    return [
        ("device", lambda: describe(device)),
        ("store", lambda: check_store(store_uri)),
        *of_each("gradients", check_gradients),
        *mamba,
        *of_each("pack", check_pack),
        *of_each("checkpoint", check_checkpoint),
        *(of_each("recorded steps", check_recorded) if device != "cpu" else []),
        *of_each("speed", timing.measure),
        ("rates", timing.record),
    ]


def describe(device: str) -> str:
    """Return what the device is, and raise `Failed` if it is set to compute with few digits."""
    if device == "cpu":
        return f"CPU, {torch.get_num_threads()} thread, torch {torch.__version__}"
    if torch.backends.cuda.matmul.allow_tf32:
        raise Failed("TF32 is on, which rounds matrix products to three digits: turn it off")
    total = torch.cuda.get_device_properties(device).total_memory / 2**30
    return (
        f"{torch.cuda.get_device_name(device)}, {total:.0f} GiB, torch {torch.__version__}, CUDA {torch.version.cuda}"
    )


def check_store(store_uri: str) -> str:
    """Write to the store and read from it."""
    store = Store.open(store_uri)
    store.verify()
    return f"{store.location} was written and read from this worker"
