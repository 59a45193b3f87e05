"""`orch plan`: the trials of sweeps, how many are done, and how long the rest takes."""

import dataclasses
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from orch.analysis.comparison import num_covered
from orch.analysis.published import published_cells
from orch.cli._edits import edits_line, find_edits
from orch.cli._options import json_option, on_option, store_option, sweep_scale_options, where_option
from orch.cli._output import echo, echo_data
from orch.cli._sweeps import say_note, sweeps_argument
from orch.cli._tables import print_rows
from orch.cluster.launcher import Launcher, read_launcher
from orch.cluster.prices import dollars
from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.planning.estimate import Basis
from orch.planning.step_time import ASSUMED_IN, START_SECONDS
from orch.running.progress import duration
from orch.sweeps.scales import LAPTOP, find_scale

if TYPE_CHECKING:
    from orch.planning.plan import Plan

MOST_REASONS = 2
SHORT_HOURS = 0.2
"""Hours of training below which the start of a run is told, because it counts."""


@click.command()
@sweeps_argument(required=True)
@sweep_scale_options
@where_option
@store_option
@on_option
@click.option("--pack", type=click.IntRange(min=1), help="Most trials in a pack; 1 shows the hours of trials alone.")
@json_option
def plan(
    sweeps: tuple[str, ...],
    scale: str | None,
    where: tuple[str, ...],
    store: str,
    on: str | None,
    pack: int | None,
    as_json: bool,
) -> None:
    """Count the trials done and left, and estimate the time.

    A trial that several sweeps have runs once. No trial is started and nothing is written. A sweep can be your own file
    (see examples/gated_sweep.py), or the name that orch status shows for it, which runs the code that is recorded in
    the store. Models and tasks of your own are tried for a few steps, in a process of their own. Hours are those of the
    packs in which orch sweep trains. With --on, the hours and dollars on that cluster are estimated too. The cluster
    need not be running; only the store of --store is read.

    \b
    Example: orch plan main --scale laptop
    """
    from orch.cluster.bill import device_of
    from orch.planning.packs import packed
    from orch.planning.plan import make_plan
    from orch.store import Store
    from orch.usercode import name_sweeps
    from orch.usercode.probe import make_probe

    opened = Store.open(store)
    named = name_sweeps(sweeps, opened, scale)
    say_note(named)
    launcher = read_launcher(on) if on else None
    device = device_of(launcher, opened) if launcher else None
    scale = named.scale or LAPTOP.name
    found = packed(make_plan(named.names, scale, where, opened, device, named.catalogue, make_probe(_say)), pack)
    if where and not found.trials and not found.waiting:
        asked = f"{', '.join(found.sweeps)} at {found.scale} scale"
        raise OrchError(f"no trial of {asked} has {' and '.join(where)}: ask for other settings")
    published = _published(found)
    edits = find_edits((planned.trial for planned in found.trials if planned.left), opened)
    if as_json:
        bills = _bills(found, launcher) if launcher else {}
        more = {"published": published, "before_edits": edits} | bills
        echo_data(json.dumps(_summary(found) | more, indent=2))
    else:
        _print(found)
        if edits:
            echo(edits_line(edits, sweeps))
        if published["covered"]:
            of_all = "all" if published["covered"] == published["cells"] else f"{published['covered']:,} of the"
            echo(f"covers {of_all} {published['cells']:,} published cells")
        if launcher:
            _print_bills(found, launcher)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        echo(text, err=True)


def _bills(found: "Plan", launcher: Launcher) -> dict[str, Any]:
    from orch.cluster.bill import assumptions, devices_per_worker, make_bills

    bills = make_bills(found, launcher)
    return {
        "on": str(launcher.path),
        "devices_per_worker": devices_per_worker(launcher),
        "bills": [dataclasses.asdict(bill) for bill in bills],
        "assumptions": assumptions(found, bills),
    }


def _print_bills(found: "Plan", launcher: Launcher) -> None:
    from orch.cluster.bill import assumptions, devices_per_worker, make_bills

    devices, bills = devices_per_worker(launcher), make_bills(found, launcher)
    if not devices:
        echo(f"{launcher.path} does not name its machines: divide the hours by the number of devices")
    for bill in bills:
        workers = counted(bill.num_workers, "worker")
        kind = "cores" if found.device == "cpu" else found.device
        time = _time(bill.hours)
        cost = "" if bill.low is None or bill.high is None else f", {dollars(bill.low)} to {dollars(bill.high)}"
        echo(f"on {workers} ({bill.num_workers * devices} x {kind}): about {time}{cost}")
    if bills:
        echo(f"assumed: {assumptions(found, bills)}")


def _published(found: "Plan") -> dict[str, int]:
    ids = {planned.id for planned in found.trials}
    return {"cells": len(published_cells()), "covered": num_covered(find_scale(found.scale), found.sweeps, ids)}


def _summary(found: "Plan") -> dict[str, Any]:
    return {
        "sweeps": list(found.sweeps),
        "scale": found.scale,
        **found.counts,
        "saved_by_sharing": found.num_saved,
        "packs": found.num_packs,
        "waiting": found.num_waiting,
        "waiting_for": dict(found.waiting),
        "left_out": found.left_out,
        "device": found.device,
        "hours_by_basis": {str(basis): hours for basis, hours in found.hours_by_basis.items()},
        "own_models": _own_models(found),
        "by_model_and_task": found.by_model_and_task(),
    }


def _print(found: "Plan") -> None:
    counts = found.counts
    rows = []
    for group in found.by_model_and_task():
        row = {name.replace("_", " "): value for name, value in group.items()}
        hours, shared = row.pop("hours"), row.pop("shared")
        if not found.waiting:
            del row["waiting"]
        in_others = {"in other sweeps too": shared} if counts["shared"] else {}
        rows.append(row | in_others | {"time left": _time(hours) if hours else ""})
    if rows:
        print_rows(rows, title=f"{', '.join(found.sweeps)} at {found.scale} scale")
    echo(
        f"{counted(counts['trials'], 'trial')}: {counts['done']:,} done, {counts['failed']:,} failed,"
        f" {counts['to_do']:,} to do" + (f", {counts['waiting']:,} waiting" if counts["waiting"] else "")
    )
    if counts["shared"]:
        echo(f"{counts['shared']:,} of them are in several sweeps; a result counts for all")
    for sentence in found.left_out:
        echo(sentence)
    if found.num_saved:
        listed = counted(counts["trials"] + found.num_saved, "trial")
        echo(f"the sweeps named here list {listed} in all; the {found.num_saved:,} that repeat are trained once")
    if found.waiting:
        echo(f"{found.num_waiting:,} wait for {_reasons(found.waiting)}")
    largest = max((planned.pack for planned in found.trials if planned.left), default=1)
    if largest > 1:
        packs = counted(found.num_packs, "pack")
        echo(f"they train in {packs} of up to {largest} trials at once (--pack 1: each alone)")
    for own in _own_models(found):
        how = "stacked" if own["stacked"] else f"in turn, because {own['reason']}"
        echo(f"{own['model']}: {how}")
    if found.hours:
        device = "one CPU core" if found.device == "cpu" else found.device
        echo(f"about {_time(found.hours)} are left for {device}: {_basis(found)}")
        if found.hours < SHORT_HOURS:
            echo(f"orch sweep takes about {START_SECONDS:.0f} s more to start Ray and its workers")


def _own_models(found: "Plan") -> list[dict[str, Any]]:
    """Return whether trials of the user's own modules share one program and, if not, why."""
    rows = {}
    for planned in found.trials:
        if planned.probed is not None and planned.probed.stacks is not None:
            name, probed = planned.trial.model.name, planned.probed
            rows[name, probed.reason] = {"model": name, "stacked": probed.stacks, "reason": probed.reason}
    return list(rows.values())


def _time(hours: float) -> str:
    """Format a duration; a long one in hours, by which devices are counted and paid."""
    return f"{hours:,.0f} h" if hours >= 48 else duration(3600 * hours)


def _reasons(waiting: Counter[str]) -> str:
    named = [f"{reason} ({count:,})" for reason, count in waiting.most_common(MOST_REASONS)]
    if len(waiting) > MOST_REASONS:
        named.append(f"{len(waiting) - MOST_REASONS:,} more such results")
    return ", ".join(named)


def _basis(found: "Plan") -> str:
    words = {
        Basis.MEASURED: "from finished trials of the same kind",
        Basis.PROBED: "from steps of your own models that were just timed",
        Basis.SCALED: "scaled from other finished trials of the model",
        Basis.TRIED: "from training steps that orch doctor timed",
        Basis.ASSUMED: f"by arithmetic at rates assumed in {ASSUMED_IN}",
    }
    shares = {basis: hours / found.hours for basis, hours in found.hours_by_basis.items() if hours}
    return ", ".join(f"{share:.0%} {words[basis]}" for basis, share in shares.items())
