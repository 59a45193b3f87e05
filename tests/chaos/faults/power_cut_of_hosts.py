"""A host of a Ray cluster loses power; sometimes it comes back and joins again."""

import time

from tests.chaos.cluster import Cluster, disturb
from tests.chaos.harness import Round
from tests.cluster import hosts

ON = ("hosts",)
RAY = True
NEEDS = hosts.missing


def run(round: Round) -> None:
    def inject(place: Cluster, name: str) -> None:
        place.hosts.kill(name)
        round.note(f"{name} is gone")
        time.sleep(round.random.uniform(0.0, 10.0))
        if round.random.random() < 0.5:
            place.hosts.start(name)
            place.join(name)
            round.note(f"{name} is back")

    disturb(round, inject)
