"""A cell: the trials that one number of a table is computed from."""

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
    """The reading of the paper that it trains, where several are compared with the same published number."""
    left_out: tuple[str, ...] = ()
    """What its scale trains it with instead of all there could be, such as "1 of 2 seeds"."""

    @property
    def example(self) -> Trial:
        """The first trial. If it waits for its learning rate, all its other settings are known."""
        first = self.trials[0]
        trial = first.trial if isinstance(first, Waiting) else first
        assert trial is not None, "a trial that waits knows all but its learning rate"
        return trial

    @property
    def shown_variant(self) -> str:
        """The model's variant as the cell names it, or else as the published tables do."""
        return self.variant or self.example.model.table_variant

    @property
    def learning_rates(self) -> frozenset[float]:
        """The learning rates of its trials; `NOT_KNOWN` stands for a rate that is still to be chosen."""
        trials = (each.trial if isinstance(each, Waiting) else each for each in self.trials)
        return frozenset(NOT_KNOWN if trial is None else trial.learning_rate for trial in trials)

    @property
    def planned(self) -> list[Trial]:
        """The trials whose settings are known, also those that wait for their learning rate."""
        trials = (each.trial if isinstance(each, Waiting) else each for each in self.trials)
        return [trial for trial in trials if trial is not None]

    @property
    def trial_ids(self) -> list[str]:
        """The ids of the trials whose learning rate is known."""
        return [trial.id for trial in self.trials if isinstance(trial, Trial)]
