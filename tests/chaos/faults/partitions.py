"""A host of a Ray cluster is cut off, or hears nothing of the head, for seconds or for good, and works on."""

import time

from tests.chaos.cluster import Cluster, disturb
from tests.chaos.harness import Round
from tests.cluster import hosts

ON = ("hosts",)
RAY = True
NEEDS = hosts.missing


def run(round: Round) -> None:
    def inject(place: Cluster, name: str) -> None:
        deaf = round.random.random() < 0.5
        if deaf:
            place.hosts.drop(name, 1.0, sender=place.hosts.head)
        else:
            place.hosts.set_plugged(name, False)
        round.note(f"{name} {'hears nothing of the head' if deaf else 'is cut off'}")
        time.sleep(round.random.uniform(1.0, 15.0))
        if round.random.random() < 0.7:
            if deaf:
                place.hosts.drop_nothing(name)
            else:
                place.hosts.set_plugged(name, True)
            round.note(f"{name} is back")

    disturb(round, inject)
