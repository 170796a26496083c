"""False alarms in a day of healthy, noisy traffic on a hundred groups, judged once a minute."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing import get_context

from benchmarks.verdicts.rules import LAGWISE, baselines, said_by, said_by_lagwise, statuses_of
from benchmarks.verdicts.score import score_of
from lagwise.traces.trace import Trace
from tests.traces import noise

EVALUATE_EVERY_S = 60.0


def of_group(number: int) -> Counter[str]:
    """False alarms of every rule on one group's day."""
    whole = noise.trace_of([number], noise.HOURS)
    trace: Trace = replace(whole, evaluate_every_s=EVALUATE_EVERY_S)
    alarms = Counter({rule.name: score_of(trace, said_by(rule, trace)).false_alarms for rule in baselines(trace)})
    alarms[LAGWISE] = score_of(trace, said_by_lagwise(trace, statuses_of(trace))).false_alarms
    return alarms


def false_alarms(names: Sequence[str], groups: int, processes: int) -> Mapping[str, int]:
    """False alarms of these rules on all groups together."""
    total = Counter(dict.fromkeys(names, 0))
    with get_context("spawn").Pool(processes) as pool:
        for alarms in pool.imap_unordered(of_group, range(groups)):
            total.update(alarms)
    return total
