"""A host of a Ray cluster loses power; sometimes it comes back and joins again."""

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
    place.hosts.kill(name)
    round.note(f"{name} is gone")
    time.sleep(round.random.uniform(0.0, 10.0))
    if round.random.random() < 0.5:
        place.hosts.start(name)
        place.join(name)
        round.note(f"{name} is back")
    place.wait(round, driver)
