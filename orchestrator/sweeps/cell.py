"""A cell: what one number of a table comes from."""

from collections.abc import Sequence
from dataclasses import dataclass

from orch.sweeps.selection import NOT_KNOWN, Waiting
from orch.sweeps.trial import Trial


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one task, trained with every learning rate and seed; nothing else differs between its trials."""

    trials: Sequence[Trial | Waiting]
    variant: str = ""
    """The model's variant as the published table calls it: at smaller scales it may be built in proportion."""
    reading: str = ""
    """What sets it apart from other cells that stand beside the same published number."""

    @property
    def example(self) -> Trial:
        """One of its trials; if that waits for its learning rate, all but that is known."""
        first = self.trials[0]
        trial = first.trial if isinstance(first, Waiting) else first
        assert trial is not None, "a trial that waits knows all but its learning rate"
        return trial

    @property
    def learning_rates(self) -> frozenset[float]:
        """Each that it is to be trained with; one that a trial still waits for is `NOT_KNOWN`."""
        trials = (each.trial if isinstance(each, Waiting) else each for each in self.trials)
        return frozenset(NOT_KNOWN if trial is None else trial.learning_rate for trial in trials)

    @property
    def trial_ids(self) -> list[str]:
        """Of the trials that do not wait."""
        return [trial.id for trial in self.trials if isinstance(trial, Trial)]
