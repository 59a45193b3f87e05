"""A bit of any file of the store is flipped, while processes run and between their runs."""

from tests.chaos import damage
from tests.chaos.harness import Round

ON = ("disk", "s3")


def run(round: Round) -> None:
    damage.damage_repeatedly(round, damage.flip)
