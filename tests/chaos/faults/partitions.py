"""A host of a Ray cluster is cut off from the others for seconds or for good, while its worker goes on."""

import time

from tests.chaos.cluster import cluster_of
from tests.chaos.harness import Round
from tests.cluster import hosts

ON = ("hosts",)
RAY = True
NEEDS = hosts.missing


def run(round: Round) -> None:
    place = cluster_of(round.place)
    driver = place.start(round)
    round.wait_for(lambda: driver.poll() is not None or any(path.startswith("attempts/") for path in place.files()))
    round.pause(5.0)
    name = round.random.choice(place.hosts.workers)
    place.hosts.set_plugged(name, False)
    round.note(f"{name} is cut off")
    time.sleep(round.random.uniform(1.0, 15.0))
    if round.random.random() < 0.7:
        place.hosts.set_plugged(name, True)
        round.note(f"{name} is back")
    place.wait(round, driver)
