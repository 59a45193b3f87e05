"""Any file of the store is deleted behind its back."""

from tests.chaos import damage
from tests.chaos.harness import Round

ON = ("disk", "s3")


def run(round: Round) -> None:
    damage.damage_repeatedly(round, damage.remove)
