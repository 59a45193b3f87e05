"""The money that the rest of a sweep costs, by the price of its machines."""

from dataclasses import dataclass
from pathlib import Path

from orch.cluster.launcher import Launcher, read_launcher
from orch.cluster.prices import hourly_cost
from orch.core.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class MoneyLeft:
    """Dollars, from the cheapest kind of machine that could be running to the most expensive."""

    low: float
    high: float

    @property
    def text(self) -> str:
        low, high = (f"${amount:,.2f}" for amount in (self.low, self.high))
        return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """The price of the machines: dollars per hour for all of them, or a launcher file that names their types."""

    dollars: float | None = None
    launcher: Launcher | None = None

    def left(self, num_machines: int, seconds_left: float | None) -> MoneyLeft | None:
        """Return the cost of the time left on this many machines; None if the time or a price is not known."""
        if seconds_left is None:
            return None
        hours = seconds_left / 3600
        if self.dollars is not None:
            return MoneyLeft(self.dollars * hours, self.dollars * hours)
        cost = None if self.launcher is None else hourly_cost(self.launcher, max(1, num_machines))
        return None if cost is None else MoneyLeft(cost.low * hours, cost.high * hours)


def read_price(text: str) -> HourlyPrice:
    """Read a price: a number of dollars per hour for all machines together, or the path of a launcher file."""
    try:
        dollars = float(text)
    except ValueError:
        if not Path(text).is_file():
            problem = f"--price {text!r} is neither dollars per hour nor a launcher file: write 3.06 or a100.yaml"
            raise InvalidSettings([problem]) from None
        return HourlyPrice(launcher=read_launcher(Path(text)))
    if not 0 <= dollars < float("inf"):
        raise InvalidSettings([f"--price {text!r} is no price: use 0 or more dollars per hour"])
    return HourlyPrice(dollars)
