"""Any file of the store is cut short, as one that was never synced is after a power cut."""

from tests.chaos import damage
from tests.chaos.harness import Round

ON = ("disk", "s3")


def run(round: Round) -> None:
    damage.damage_repeatedly(round, damage.cut)
