"""The command that asks in a terminal what the pages Capacity and Plan ask."""

from lagwise.domain.sizing import workload as defaults
from lagwise.domain.sizing.formulas import DEFAULT_OUTAGE_CATCH_UP_SECONDS
from lagwise.domain.sizing.workload import Concurrency, SizeBy, Unit, Workload


def command(workload: Workload) -> str:
    """``lagwise size …`` with the options that differ from their defaults."""
    w = workload
    takes = f"--t1 {_text(w.t1_seconds * 1e3)}ms --t2 {_text(w.t2_seconds * 1e3)}ms --cores {_text(w.cores)}"
    words = [
        "lagwise size",
        f"--per-message {_text(w.t1_seconds * 1e3)}ms" if w.by_members else takes,
        f"--peak {_text(w.peak_rate_per_second)} --partitions {w.partitions}",
    ]
    if w.objective_rate_per_second is not None:
        words.append(f"--objective-rate {_text(w.objective_rate_per_second)}")
        if w.objective_seconds is not None:
            words.append(f"--objective {_text(w.objective_seconds)}s")
    if w.size_by is SizeBy.PEAK:
        words.append(f"--by {w.size_by}")
    if w.unit is Unit.SUBTASK:
        words.append(f"--unit {w.unit}")
    if w.hottest_share is not None:
        words.append(f"--hottest-share {_text(w.hottest_share * 100)}%")
    if w.target_utilisation != defaults.DEFAULT_TARGET_UTILISATION:
        words.append(f"--utilisation {_text(w.target_utilisation * 100)}%")
    if w.catch_up_seconds != defaults.DEFAULT_CATCH_UP_SECONDS:
        words.append(f"--catch-up {_text(w.catch_up_seconds)}s")
    if w.restart_seconds != defaults.DEFAULT_RESTART_SECONDS:
        words.append(f"--restart {_text(w.restart_seconds)}s")
    if w.outage_seconds:
        words.append(f"--outage {_text(w.outage_seconds)}s")
    if w.outage_catch_up_seconds != DEFAULT_OUTAGE_CATCH_UP_SECONDS:
        words.append(f"--outage-catch-up {_text(w.outage_catch_up_seconds)}s")
    if w.share_of_ceiling != defaults.DEFAULT_SHARE_OF_CEILING:
        words.append(f"--ceiling-share {_text(w.share_of_ceiling * 100)}%")
    if w.lag:
        words.append(f"--lag {_text(w.lag)}")
    if w.spare_nodes != 1 and w.unit is not Unit.SUBTASK:
        words.append(f"--spare-nodes {w.spare_nodes}")
    if not w.by_members and w.max_threads_per_node != defaults.DEFAULT_MAX_THREADS_PER_NODE:
        words.append(f"--max-threads {w.max_threads_per_node}")
    if w.concurrency is not Concurrency.CONSUMER_PER_THREAD:
        words.append(f"--concurrency {w.concurrency}")
    if w.ordering is not None:
        words.append(f"--ordering {w.ordering}")
    return " ".join(words)


def _text(number: float) -> str:
    """A number as one types it: no exponent, no digits that only rounding made."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
