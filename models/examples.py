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


EXAMPLES: tuple[Example, ...] = ()


def examples_of(model: str) -> list[Example]:
    """Return the measured commands of a model."""
    return [example for example in EXAMPLES if example.model == model]
