"""Groups in a storm of rebalances.

``storm`` has 53 members that come back under their own names: twenty calm minutes, and then another assignment in every
sample. In ``crash-loop``, pods that get a new name with every start crash a thousand times, next to six that stay.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.store import Lake
from tests.dashboard import lakes

GROUP, MEMBERS_OF_IT, REBALANCES = "storm", 53, 300
CRASH_LOOP, CRASHES, STAYING = "crash-loop", 1_000, 6
#: Pods of the crash loop that are in the group at the same time.
_PODS = 40
_STEP, _SAMPLES, _CALM_SAMPLES = timedelta(seconds=30), 100, 40
Row = dict[str, Any]


def write(lake: Lake, now: datetime) -> None:
    """Add the group's samples and rebalances of the fifty minutes before ``now``."""
    times = [now - _STEP * (_SAMPLES - i) for i in range(_SAMPLES)]
    lakes.append(lake, GROUPS, [_sample(i, at) | {"state": "Stable", "type": "classic"} for i, at in enumerate(times)])
    lakes.append(lake, MEMBERS, [row for i, at in enumerate(times) for row in _members(i, at)])
    began = times[_CALM_SAMPLES]
    every = (times[-1] - began) / REBALANCES
    lakes.append(
        lake,
        EVENTS,
        [
            {
                "cluster": "prod", "at": began + every * n, "kind": "rebalance", "group": GROUP, "generation": 100 + n,
                "cause": "a member left", "joined": [], "left": [f"worker-{n % MEMBERS_OF_IT} (/10.0.0.1)"],
                "partitions_moved": 2, "duration_seconds": None,
            }
            for n in range(REBALANCES)
        ],
    )  # fmt: skip
    lakes.append(lake, REBALANCE_STATS, [_hour(GROUP, times[-1], REBALANCES)])


def write_crash_loop(lake: Lake, now: datetime) -> None:
    """Add the samples and rebalances of the fifty minutes before ``now`` of the group with the crash loop.

    Every three seconds the oldest pod crashes, and another one joins: each lives for two minutes.
    """
    times = [now - _STEP * (_SAMPLES - i) for i in range(_SAMPLES)]
    every = (times[-1] - times[0]) / CRASHES
    started = {number: times[0] + every * (number - _PODS) for number in range(CRASHES + _PODS)}
    sample = {"cluster": "prod", "group": CRASH_LOOP}
    samples = [sample | {"sample_id": f"crash-loop-{i}", "sampled_at": at} for i, at in enumerate(times)]
    lakes.append(lake, GROUPS, [one | {"state": "Stable", "type": "classic"} for one in samples])
    rows = []
    for one in samples:
        pods = [n for n, at in started.items() if at <= one["sampled_at"] < at + every * _PODS]
        names = [*(f"stays-{n}" for n in range(STAYING)), *map(_pod, pods)]
        rows += [one | _member(name, place) for place, name in enumerate(names)]
    lakes.append(lake, MEMBERS, rows)
    lakes.append(
        lake,
        EVENTS,
        [
            {
                "cluster": "prod", "at": started[number] + every / 2, "kind": "rebalance", "group": CRASH_LOOP,
                "generation": number, "cause": "member_failed", "joined": [f"{_pod(number)} (/10.0.0.1)"],
                "left": [f"{_pod(number - _PODS)} (/10.0.0.1)"], "partitions_moved": 2, "duration_seconds": 1.5,
                "source": "offsets_topic",
            }
            for number in range(_PODS, CRASHES + _PODS)
        ],
    )  # fmt: skip
    lakes.append(lake, REBALANCE_STATS, [_hour(CRASH_LOOP, times[-1], CRASHES)])


def _hour(group: str, last_at: datetime, rebalances: int) -> Row:
    return {
        "cluster": "prod", "group": group, "hour": last_at.replace(minute=0, second=0, microsecond=0),
        "rebalances": rebalances, "exact": True, "downtime_seconds": 5.0, "downtime_seconds_at_most": 234.0,
        "partitions_moved": 2 * rebalances, "joined": rebalances, "left": rebalances, "churning": [], "is_storm": True,
        "cause": "failing_members", "sentence": "Members come and go.", "remedy": "Look at why they leave.",
        "reread_records_at_most": None, "last_at": last_at, "events": rebalances,
    }  # fmt: skip


def _pod(number: int) -> str:
    return f"pod-{number * 7919 % 10_007:05d}"


def _member(name: str, place: int) -> Row:
    return {
        "member_id": f"{name}-id", "client_id": name, "host": "/10.0.0.1", "assigned_partitions": 2,
        "assignment": [{"topic": "events", "partitions": [2 * place, 2 * place + 1]}],
    }  # fmt: skip


def _sample(number: int, at: datetime) -> Row:
    return {"sample_id": f"storm-{number}", "cluster": "prod", "sampled_at": at, "group": GROUP}


def _members(number: int, at: datetime) -> Iterator[Row]:
    is_calm = number < _CALM_SAMPLES
    for m in range(MEMBERS_OF_IT):
        if not is_calm and (number + m) % 7 == 0:
            continue
        first = 2 * m if is_calm else (2 * m + number) % 106
        yield _sample(number, at) | {
            "member_id": f"worker-{m}-id", "client_id": f"worker-{m}", "host": "/10.0.0.1",
            "assignment": [{"topic": "events", "partitions": [first, first + 1]}], "assigned_partitions": 2,
        }  # fmt: skip
