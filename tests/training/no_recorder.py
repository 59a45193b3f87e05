"""A recorder that runs the static step each time, without recording it."""

from orch.training.capture import StepFunction


class TheStepItself:
    def warm_up(self, step: StepFunction) -> None:
        step()

    def record(self, step: StepFunction) -> StepFunction:
        return step
