"""A host of a Ray cluster is cut off from the others for seconds or for good, while its worker goes on."""

import time

from tests.chaos.cluster import Cluster, disturb
from tests.chaos.harness import Round
from tests.cluster import hosts

ON = ("hosts",)
RAY = True
NEEDS = hosts.missing


def run(round: Round) -> None:
    def hurt(place: Cluster, name: str) -> None:
        place.hosts.set_plugged(name, False)
        round.note(f"{name} is cut off")
        time.sleep(round.random.uniform(1.0, 15.0))
        if round.random.random() < 0.7:
            place.hosts.set_plugged(name, True)
            round.note(f"{name} is back")

    disturb(round, hurt)
