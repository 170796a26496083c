"""Which groups' oldest unread records are late and keep getting older. Ages are remembered from sample to sample; at
the start they come from the history in the lake."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.config import Config
from lagwise.domain.aging import AgePace, OldestUnread
from lagwise.domain.group_record import GroupNumbers, numbers_of
from lagwise.tables.analysis import GROUP_HISTORY, PARTITION_STATUS
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.group_facts import Group
from lagwise_alerts.evaluate.observation import GroupRow

#: The lag objective of a group, in seconds.
LagObjective = Callable[[Group], float]
#: What is usual for a group.
PaceOf = Callable[[Group], AgePace]

#: The lag objective of a group whose cluster is not in the settings.
_USUAL_OBJECTIVE_SECONDS = 300.0
_CADENCES = """
select cluster, "group", max(commit_cadence_seconds) as cadence from partition_status where lag_seconds > 0 group by all
"""
_HISTORY = """
select cluster, "group", as_of, lag_seconds, lag_seconds_is_lower_bound
from group_history join wanted using (cluster, "group")
where lag_seconds is not null and as_of >= since and as_of < until order by as_of
"""
_WANTED = pa.schema(
    [("cluster", pa.string()), ("group", pa.string()), ("since", TIMESTAMP), ("until", TIMESTAMP)],
)


class UnreadAges:
    """Remembers the ages of each group. Not thread-safe."""

    def __init__(self) -> None:
        self._followed: dict[Group, OldestUnread] = {}
        self._has_read_history = False

    def see(self, group: Group, as_of: datetime, numbers: GroupNumbers, pace: AgePace) -> bool:
        """Take a sample. Returns whether the oldest unread record is late and keeps getting older.

        The same sample again changes nothing.
        """
        if numbers.lag_seconds is None:
            return False
        is_lower_bound = bool(numbers.lag_seconds_is_lower_bound)
        followed = self._followed.setdefault(group, OldestUnread())
        return followed.see(as_of.timestamp(), numbers.lag_seconds, pace, is_lower_bound=is_lower_bound)

    def follow(self, lake: Lake, rows: Iterable[GroupRow], pace_of: PaceOf) -> Iterator[GroupRow]:
        """The rows, with ``is_getting_older`` set. Raises LakeError."""
        rows = list(rows)
        if not self._has_read_history:
            self._read_history(lake, rows, pace_of)
            self._has_read_history = True
        there = {row.key for row in rows}
        for gone in self._followed.keys() - there:
            del self._followed[gone]
        for row in rows:
            pace = pace_of(row.key)
            yield replace(row, is_getting_older=self.see(row.key, row.record.as_of, row.record.numbers, pace))

    def _read_history(self, lake: Lake, rows: Iterable[GroupRow], pace_of: PaceOf) -> None:
        wanted: list[dict[str, Any]] = []
        for row in rows:
            record, pace = row.record, pace_of(row.key)
            if (record.numbers.lag_seconds or 0.0) > pace.interval_seconds:
                since = record.as_of - timedelta(seconds=pace.remembered_seconds)
                wanted.append({"cluster": record.cluster, "group": record.group, "since": since, "until": record.as_of})
        if not wanted:
            return
        given = {"wanted": pa.Table.from_pylist(wanted, schema=_WANTED)}
        first = min(one["since"] for one in wanted)
        history = lake.query(_HISTORY, over=[GROUP_HISTORY], since=first, given=given)
        for batch in history.to_batches(max_chunksize=10_000):
            for past in batch.to_pylist():
                group = (past["cluster"], past["group"])
                self.see(group, past["as_of"], numbers_of(past), pace_of(group))


def read_cadences(lake: Lake) -> dict[Group, float | None]:
    """Commit cadences, in seconds, of the groups with unread records. Raises LakeError."""
    rows = lake.query(_CADENCES, over=[PARTITION_STATUS]).to_pylist()
    return {(row["cluster"], row["group"]): row["cadence"] for row in rows}


def usual_objective(group: Group) -> float:
    """The lag objective of groups that are not in the settings."""
    return _USUAL_OBJECTIVE_SECONDS


def objectives_of(config: Config) -> LagObjective:
    """The lag objectives in the settings."""
    return lambda group: config.lag_objective_of(*group)
