"""The command line: `python -m tests.chaos --seed 7 --rounds 10`."""

import argparse
import signal
import sys
from collections import defaultdict

from tests.chaos.faults import FAULTS
from tests.chaos.rounds import PLACES, Series, choose


def main() -> int:
    """Run rounds; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first round's; each further round has the next one")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--on", choices=PLACES, help="where the store is; by default rounds take turns on disk and s3")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="only this one")
    parser.add_argument("--no-ray", action="store_true", help="only rounds of plain processes, which take seconds")
    parser.add_argument("--list", action="store_true", help="list all faults, and stop")
    given = parser.parse_args()
    if given.list:
        for fault in FAULTS.values():
            print(f"{fault.name:22} {'ray  ' if fault.ray else 'plain'} {','.join(fault.on):8} {fault.about}")
            if fault.missing:
                print(f"{'':22} not on this machine: {fault.missing}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))  # so that servers and folders go with it
    failed = []
    times = defaultdict(list)
    with Series() as series:
        for seed in range(given.seed, given.seed + given.rounds):
            choice = choose(seed, given.fault, given.on, with_ray=not given.no_ray)
            outcome = series.run(choice)
            times[choice.fault.name].append((outcome.seconds, outcome.cpu_seconds))
            verdict = "FAILED" if outcome.problems else "passed"
            print(
                f"{seed:6} {choice.fault.name:22} {choice.place:6} {verdict}"
                f" {outcome.seconds:6.1f} s, CPU {outcome.cpu_seconds:5.1f} s",
                flush=True,
            )
            if outcome.problems:
                failed.append(seed)
                for problem in outcome.problems:
                    print(f"       {problem}")
                print(f"       its folder: {outcome.folder}\n       again: {choice.replay}", flush=True)
    for name, pairs in sorted(times.items()):
        wall, cpu = (sum(each) / len(pairs) for each in zip(*pairs, strict=True))
        print(f"{name:22} {len(pairs):4} rounds, {wall:6.1f} s and {cpu:5.1f} s of CPU each")
    print(f"{given.rounds - len(failed)} of {given.rounds} rounds passed" + (f"; failed: {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
