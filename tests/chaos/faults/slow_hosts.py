"""A host of a Ray cluster has a slow network that loses packets, for seconds or to the end."""

import time

from tests.chaos.cluster import Cluster, disturb
from tests.chaos.harness import Round
from tests.cluster import hosts

ON = ("hosts",)
RAY = True
NEEDS = hosts.missing


def run(round: Round) -> None:
    def inject(place: Cluster, name: str) -> None:
        kilobits, lost = round.random.choice((100, 300, 1000)), round.random.uniform(0.0, 0.3)
        place.hosts.slow_down(name, kilobits)
        place.hosts.drop(name, lost)
        round.note(f"{name} sends {kilobits} kilobits a second and loses {lost:.0%} of what it is sent")
        time.sleep(round.random.uniform(5.0, 30.0))
        if round.random.random() < 0.7:
            place.hosts.speed_up(name)
            place.hosts.drop_nothing(name)
            round.note(f"{name} is back to normal")

    disturb(round, inject)
