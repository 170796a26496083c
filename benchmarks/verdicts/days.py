"""False alarms in the two healthy days, judged once a minute."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

from benchmarks.verdicts.rules import LAGWISE, baselines, said_by, score_of_lagwise, statuses_of
from benchmarks.verdicts.score import score_of
from lagwise.traces.trace import Trace
from tests.traces import noise, quiet_day

EVALUATE_EVERY_S = 60.0

#: Makes the trace of one group.
Group = Callable[[], Trace]
#: The groups of each day.
DAYS: Mapping[str, Sequence[Group]] = {
    "noise": [partial(noise.trace_of, [number], noise.HOURS) for number in range(noise.GROUPS)],
    "operations": [
        partial(quiet_day.trace_of, seed, number) for seed in quiet_day.SEEDS for number in range(quiet_day.GROUPS)
    ],
}


def of_group(group: Group) -> Counter[str]:
    """False alarms of every rule on one group's day."""
    trace: Trace = replace(group(), evaluate_every_s=EVALUATE_EVERY_S)
    alarms = Counter({rule.name: score_of(trace, said_by(rule, trace)).false_alarms for rule in baselines(trace)})
    alarms[LAGWISE] = score_of_lagwise(trace, statuses_of(trace)).false_alarms
    return alarms


def false_alarms(names: Iterable[str], groups: Sequence[Group], processes: int) -> Mapping[str, int]:
    """False alarms of these rules on all groups together."""
    total = Counter(dict.fromkeys(names, 0))
    with get_context("spawn").Pool(processes) as pool:
        for alarms in pool.imap_unordered(of_group, groups):
            total.update(alarms)
    return total
