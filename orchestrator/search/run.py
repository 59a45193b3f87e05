"""Run a search. It can be stopped at any moment and repeated: it continues where it was stopped."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator

from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.running.lease import Lease
from orch.running.options import RunOptions
from orch.search.history import History, record_question
from orch.search.search_session import SearchSession, SearchSummary
from orch.search.smallest import Smallest
from orch.search.space import Params
from orch.search.spec import MOST_LOOKED_AT, SearchSpec
from orch.search.strategy import Best, Strategy
from orch.store import Store
from orch.sweeps.memory import check_memory, found_device
from orch.sweeps.recipe import check_device
from orch.sweeps.trial import Trial
from orch.usercode.probe import probe

POINTS = 20
POINTS_PER_VALUE = 5
"""Points for each value of the setting that `smallest` asks for, if other settings are varied too."""


def default_points(question: SearchSpec) -> int:
    if question.smallest is None:
        return POINTS
    return POINTS_PER_VALUE if len(question.space.dimensions) > 1 else 1


def make_strategy(question: SearchSpec, num_points: int) -> Strategy:
    """Make the strategy of a search with `num_points` points in all or, with `smallest`, for each value."""
    level = question.smallest
    if level is None:
        return Best(num_points)
    space = question.space
    points_at = {}
    for value in space[level.name].values:
        candidates = itertools.islice(space.points({level.name: value}), MOST_LOOKED_AT)
        num_valid = sum(_is_valid(question, params) for params in candidates)
        if num_valid:
            points_at[value] = min(num_points, num_valid) if space.is_finite else num_points
    return Smallest(level.name, points_at, level.at_least)


def _is_valid(question: SearchSpec, params: Params) -> bool:
    try:
        return bool(question.trials(params))
    except OrchError:
        return False


def _largest(question: SearchSpec) -> Iterator[Trial]:
    """Yield a trial of each of the first points, lists in order and ranges at their ends, that can be trained."""
    for params in itertools.islice(question.space.points(), MOST_LOOKED_AT):
        with contextlib.suppress(OrchError):
            yield question.trials(params)[0]


def run_search(
    question: SearchSpec, num_points: int, store: Store, options: RunOptions, say: Callable[[str], None]
) -> SearchSummary:
    """Train the points that the search still lacks, and return a summary."""
    from orch.running.machines import connected, on_cluster

    if not on_cluster():
        check_memory(_largest(question), options.device)
        check_device(_largest(question), found_device(options.device))

    started = time.monotonic()
    strategy = make_strategy(question, num_points)
    history = History(store, question.id)
    remedy = "wait for it, or search on another --store"
    lease = Lease(store, f"search {question.id}")
    lease.check_alone(remedy)
    probe([question.example], say)
    with connected(options.num_cpus, options.gpus_per_trial, options.device) as machines:
        say(f"running on {machines.description}; store {store.location}")
        num_known, num_open = len(history.results), len(history.under_way)
        known = (
            f"; it continues, with {counted(num_known, 'point')} known and {num_open} under way"
            if num_known or num_open
            else ""
        )
        say(f"search {question.id}: {question.description}; at most {counted(strategy.num_points, 'point')}{known}")
        store.verify()
        with lease:
            lease.check_alone(remedy)  # again: Ray takes seconds to start
            record_question(store, question, num_points)
            with SearchSession(question, strategy, history, store, machines, lease, options) as session:
                summary = session.run()
    summary.seconds = time.monotonic() - started
    return summary
