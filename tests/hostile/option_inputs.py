"""Options with values that nobody means."""

import itertools
from pathlib import Path

from hypothesis import strategies as st

from tests.hostile.plan import STORE, Plan, plan
from tests.hostile.values import NUMBER_TEXTS, arguments

TRAIN = ("train", "--model", "bilinear", "--task", "parity_check", "--steps", "1", "--max-inputs", "3",
"--test-length", "4",
          "--validation-samples", "4", "--test-samples", "4", "--width", "8", "--batch-size", "2", "--precision",
          "float64", "--json")  # fmt: skip
_FREE = {
    TRAIN: (
        "--learning-rate", "--momentum", "--weight-decay", "--clip-norm", "--stop-loss", "--stop-accuracy", "--seed",
        "--init-seed", "--eval-seed", "--epochs", "--device", "--threads", "--save", "--checkpoint", "--min-inputs",
        "--supervision", "--curriculum", "--optimiser", "--curve-lengths", "--init-scale", "--modulus", "--protocol",
        "--trial", "--store", "--eval-every", "--warmup-steps", "--heads",
    ),
    ("status",): ("--store",),
    ("watch", "--once"): ("--price", "--store"),
    ("plan", "demo", "--scale", "smoke"): ("--where", "--pack", "--on", "--store", "--scale"),
    ("query", "SELECT 1"): ("--with", "--sweep", "--scale", "--timeout", "--memory", "--output", "--format", "--store"),
    ("results",): ("--where", "--by", "--scale", "--format", "--output"),
    ("report", "demo", "--format", "markdown"): ("--check", "--output", "--scale"),
    ("search", "--model", "bilinear", "--task", "parity_check", "--vary", "width=1"): (
        "--vary", "--seeds", "--points", "--at-least", "--grace", "--top", "--figure", "--max-hours", "--cpus",
        "--checkpoint-seconds", "--hang-seconds", "--weights-mb", "--gpus-per-trial", "--sampler-seed", "--metric",
    ),
    ("sweep", "demo", "--scale", "smoke", "--where", "init_seed=77"): (
        "--max-hours", "--weights-mb", "--confidence", "--pack", "--cpus", "--on", "--where", "--scale", "--store",
    ),
    ("tasks",): ("--modulus", "--group", "--json"),
    ("tasks", "group"): ("--group", "--modulus"),

    ("tasks", "automaton"): ("--table", "--pattern", "--called"),
    ("models",): ("--modulus", "--task", "--width"),
    ("models", "delta_product"): ("--householders", "--layers", "--width", "--heads"),
    ("discard", "--reason", "x", "--yes"): ("--where", "--trial", "--before-edit", "--reason"),
    ("merge",): ("--store", "--seed", "--verify"),
    ("doctor", "--device", "cuda"): ("--seconds", "--device"),
    ("failures",): ("--store",),
    ("logs",): ("--store", "--on"),
    ("export", "csv", "out"): ("--where", "--scale", "--store"),
    ("claims",): ("--scale", "--confidence", "--output"),
}  # fmt: skip


@st.composite
def options(draw: st.DrawFn) -> Plan:
    """Draw a command with one or two options of hostile values."""
    words = draw(st.sampled_from(sorted(_FREE)))
    given: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        flag = draw(st.sampled_from(_FREE[words]))
        value = draw(st.one_of(st.sampled_from(NUMBER_TEXTS), arguments, st.sampled_from(_LOCATIONS)))
        given.append(f"{flag}={value}" if draw(st.booleans()) or value.startswith("-") else flag)
        if "=" not in given[-1]:
            given.append(value)
    about = f"options {given}"
    return plan(*words, *given, about=about, may_change=(STORE, "out", "x", *_written(given)))


_LOCATIONS = ("abfs://", "hdfs://nowhere/x", "file://", "gs://", "s3://", "://", "mock://x", "http://127.0.0.1:1/x",
"file:///dev/null")  # fmt: skip


def _written(given: list[str]) -> tuple[str, ...]:
    """Return the names of files that the options allow a command to write."""
    flags = ("--save", "--checkpoint", "--output", "--figure", "--store")
    values = [word.partition("=")[2] for word in given if word.startswith(flags)]
    values += [after for word, after in itertools.pairwise(given) if word in flags]
    return tuple(Path(value).parts[0] for value in values if value and Path(value).parts)
