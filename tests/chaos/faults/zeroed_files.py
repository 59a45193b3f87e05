"""Any file of the store ends in zeros, as after a power cut on a file system that has grown it already."""

from tests.chaos import damage
from tests.chaos.harness import Round

ON = ("disk", "s3")


def run(round: Round) -> None:
    damage.damage_repeatedly(round, damage.zeros)
