"""A survey of hostile inputs: so many of each kind, and how often a command did what it must never do.

`python -m tests.hostile.survey --examples 1000` prints a table.
"""

import argparse
import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import NonInteractiveExampleWarning

from tests.hostile.case import Case, Finding, examine
from tests.hostile.kinds import KINDS
from tests.hostile.plan import Plan, copy_store
from tests.hostile.store import fill

SEED = 16
CANARY = "canary.txt"


def plans(kind: str, number: int, from_seed: int = SEED) -> list[Plan]:
    """Return so many plans of a kind, the same ones every time."""
    found: list[Plan] = []

    @seed(from_seed)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[kind])
    def collect(plan: Plan) -> None:
        found.append(plan)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonInteractiveExampleWarning)
        collect()
    return found[:number]


def survey(kind: str, number: int, store: Path, folder: Path, from_seed: int = SEED) -> list[Finding]:
    """Examine so many hostile inputs of a kind, each in a folder of its own with a copy of the store."""
    found: list[Finding] = []
    for count, plan in enumerate(plans(kind, number, from_seed)):
        place = folder / f"{count}"
        inside = place / "inside"
        inside.mkdir(parents=True)
        (place / CANARY).write_text("unchanged")
        if plan.needs_store:
            copy_store(store, inside)
        plan.prepare(inside)
        found += examine(Case(kind, plan.words, inside, plan.about, plan.may_change, plan.given))
        shutil.rmtree(place)
    return found


def table(found: Iterable[Finding], counts: dict[str, int]) -> str:
    """Return a table of the findings by kind."""
    numbers = Counter((each.kind, each.what) for each in found)
    names = ("traceback", "hang", "escape", "silence", "change")
    lines = [f"{'kind':16}{'inputs':>8}" + "".join(f"{name:>11}" for name in names)]
    for kind, count in counts.items():
        lines.append(f"{kind:16}{count:>8}" + "".join(f"{numbers[kind, name]:>11}" for name in names))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=SEED, help="another one makes other inputs")
    parser.add_argument("--kind", choices=sorted(KINDS), action="append")
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    found, counts = [], {}
    kinds = arguments.kind or list(KINDS)
    with tempfile.TemporaryDirectory(prefix="orch-hostile-") as name:
        store = Path(name) / "store"
        fill(store)
        for kind in kinds:
            counts[kind] = -(-arguments.examples // len(kinds))
            started = time.process_time()
            new = survey(kind, counts[kind], store, Path(name) / kind, arguments.seed)
            found += new
            print(f"{kind}: {len(new)} findings in {time.process_time() - started:.0f} s of computing", flush=True)
            for each in new:
                print(each, flush=True)
    print(table(found, counts))


if __name__ == "__main__":
    main()
