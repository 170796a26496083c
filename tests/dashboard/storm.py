"""A group in a storm of rebalances: 53 members, twenty calm minutes, and then another assignment in every sample."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.store import Lake
from tests.dashboard import lakes

GROUP, MEMBERS_OF_IT, REBALANCES = "storm", 53, 300
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
    hour = times[-1].replace(minute=0, second=0, microsecond=0)
    lakes.append(
        lake,
        REBALANCE_STATS,
        [
            {
                "cluster": "prod", "group": GROUP, "hour": hour, "rebalances": REBALANCES, "exact": True,
                "downtime_seconds": 5.0, "downtime_seconds_at_most": 234.0, "partitions_moved": 600, "joined": 300,
                "left": 300, "churning": [], "is_storm": True, "cause": "failing_members",
                "sentence": "Members come and go.", "remedy": "Look at why they leave.",
                "reread_records_at_most": None, "last_at": times[-1], "events": REBALANCES,
            }
        ],
    )  # fmt: skip


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
