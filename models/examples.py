"""Commands that train a model on a task it can learn, each with the accuracy that it gave on one CPU core."""

from typing import Any, NamedTuple

SHARED = "--steps 1000 --test-length 100"
"""Options of all commands."""


class Example(NamedTuple):
    """One measured command: a single seed, so that it shows settings that work and not how often they do."""

    model: str
    options: str
    """Options of the task, the model and its training."""
    trained: float
    """Accuracy at the trained lengths of 2 to 10 inputs; 0 is chance, 1 is perfect."""
    at_20: float
    """Accuracy at 20 inputs."""
    at_100: float
    """Accuracy at 100 inputs."""

    @property
    def command(self) -> str:
        return f"orch train --model {self.model} {self.options} {SHARED}"

    @property
    def row(self) -> dict[str, Any]:
        """The example as a row of a table."""
        return {"command": self.command, "2–10": self.trained, "20": self.at_20, "100": self.at_100}


EXAMPLES = (
    Example("delta_net", "--task parity_check --negative-eigenvalues --width 32 --learning-rate 1e-2", 1.0, 0.99, 0.73),
    Example(
        "delta_product",
        "--task group --group S3 --negative-eigenvalues --kernel-size 0 --mlp 0 --width 32 --learning-rate 3e-3",
        *(1.0, 1.0, 0.95),
    ),
    Example(
        "gated_delta_net",
        "--task parity_check --negative-eigenvalues --kernel-size 0 --mlp 0 --width 32 --learning-rate 3e-3",
        *(1.0, 1.0, 0.26),
    ),
    Example("lru", "--task even_pairs --layers 2 --width 32 --learning-rate 3e-3", 0.95, 0.06, 0.01),
    Example("mamba", "--task parity_check --negative-eigenvalues --width 32 --learning-rate 3e-3", 1.0, 0.93, 0.48),
    Example("mi_rnn", "--task group --group S3 --width 64 --learning-rate 1e-3", 1.0, 1.0, 1.0),
    Example("mlstm", "--task flip_flop --modulus 3 --width 32 --learning-rate 1e-2", 1.0, 1.0, 1.0),
    Example("rg_lru", "--task flip_flop --modulus 3 --width 32 --learning-rate 1e-2", 1.0, 1.0, 1.0),
    Example("sd_ssm", "--task group --group S3 --matrices 12 --width 32 --learning-rate 3e-3", 1.0, 1.0, 1.0),
    Example("slstm", "--task parity_check --heads 1 --width 32 --learning-rate 1e-2", 1.0, 1.0, 1.0),
    Example("unitary_diagonal", "--task parity_check --mlp 0 --width 32 --learning-rate 3e-3", 1.0, 1.0, 0.17),
)
"""A command for each model that is not the paper's. LRU's transitions do not depend on the input: it only fits."""


def examples_of(model: str) -> list[Example]:
    """Return the measured commands of a model."""
    return [example for example in EXAMPLES if example.model == model]
