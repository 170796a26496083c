"""The recent history that the scaling signal rests on: the load and the number of members of each group, by time.

Each data file of a history is read once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import duckdb
import pyarrow as pa

from lagwise.domain.capacity.scaling import Load, Members, ScalingPolicy
from lagwise.tables.analysis import GROUP_HISTORY
from lagwise.tables.arrow_values import values_of
from lagwise.tables.raw import GROUPS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise.tables.store import Lake

#: Cluster and group.
Key = tuple[str, str]

#: The window that is kept for every group. A longer one is kept for a group while requests need it.
WINDOW_SECONDS = ScalingPolicy().down_after_seconds
#: A window also needs the last moment before it. It is looked for in this much time before the window.
_MARGIN = timedelta(minutes=5)

_Moment = TypeVar("_Moment", Load, Members)

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_EXTENDED = pa.schema({"cluster": pa.string(), "group": pa.string(), "since": TIMESTAMP})

_LOADS = """
    select cluster, "group", epoch_us(as_of), produce_rate_per_second, lag
    from group_history left join longer using (cluster, "group")
    where as_of >= coalesce(since, $since) and lag is not null and produce_rate_per_second is not null
    order by 3
"""
_MEMBERS = """
    select cluster, "group", epoch_us(sampled_at), member_count
    from groups left join longer using (cluster, "group")
    where sampled_at >= coalesce(since, $since) and member_count is not null
    order by 3
"""


class RetainedSpan:
    """The beginning of the history to keep, for each group."""

    def __init__(self, longer: Mapping[Key, float], now: datetime) -> None:
        self.since = window_start(WINDOW_SECONDS, now)
        of_longer = {key: window_start(seconds, now) for key, seconds in longer.items()}
        self.first = min([self.since, *of_longer.values()])
        rows = [{"cluster": cluster, "group": group, "since": at} for (cluster, group), at in of_longer.items()]
        #: The groups with a longer window, for the queries.
        self.longer = pa.Table.from_pylist(rows, schema=_EXTENDED)
        self._stamp, self._stamps = _stamp(self.since), {key: _stamp(at) for key, at in of_longer.items()}

    def stamp(self, key: Key) -> int:
        """The beginning of the history to keep for this group, in microseconds since 1970."""
        return self._stamps.get(key, self._stamp)


@dataclass(slots=True)
class NewRows:
    """The data files of a table, and the rows of those that were not read before."""

    files: frozenset[str]
    rows: list[tuple[Any, ...]]


class HistoryWindow(Generic[_Moment]):
    """The recent rows of a history, by group and time, as moments that ``make`` makes of a row."""

    def __init__(self, table: Table, query: str, make: Callable[..., _Moment]) -> None:
        self.table = table
        #: Data files that have been read.
        self.files: frozenset[str] = frozenset()
        self._query = query
        self._make: Callable[..., _Moment] = make
        self._moments: defaultdict[Key, dict[int, _Moment]] = defaultdict(dict)

    def read_new(self, lake: Lake, connection: duckdb.DuckDBPyConnection, kept: RetainedSpan) -> NewRows:
        """Read what is new in the lake. The window does not change."""
        files = lake.scan_new(connection, self.table, self.files, since=kept.first)
        connection.register("longer", kept.longer)
        rows = list(tuples_of(connection.sql(self._query, params={"since": kept.since})))
        return NewRows(files, rows)

    def add(self, new: NewRows) -> None:
        """Add the rows. One that was read before, from a file that has been compacted since, replaces itself."""
        if not self.files:
            self._moments.clear()
        self.files = new.files
        for cluster, group, at, *values in new.rows:
            self._moments[cluster, group][at] = self._make(_EPOCH + at * _MICROSECOND, *values)

    def trim(self, kept: RetainedSpan) -> None:
        """Remove what is older than needed.

        Except for late ones, moments were added in order of time, so the old ones come first.
        """
        for key in list(self._moments):
            moments, first = self._moments[key], kept.stamp(key)
            while moments and (oldest := next(iter(moments))) < first:
                del moments[oldest]
            if not moments:
                del self._moments[key]

    def of(self, key: Key, since: datetime) -> list[_Moment]:
        """The moments of a group from ``since`` on."""
        first = _stamp(since)
        return [moment for at, moment in self._moments.get(key, {}).items() if at >= first]


def _stamp(at: datetime) -> int:
    """Microseconds since 1970, as in the queries: cheaper than datetimes where there are many."""
    return (at - _EPOCH) // _MICROSECOND


def loads() -> HistoryWindow[Load]:
    """The load of each group, one for each round of the analysis."""
    return HistoryWindow(GROUP_HISTORY, _LOADS, lambda at, rate, lag: Load(at, max(0.0, rate), float(lag)))


def members() -> HistoryWindow[Members]:
    """The number of members of each group, one for each sample."""
    return HistoryWindow(GROUPS, _MEMBERS, Members)


def window_start(window_seconds: float, now: datetime) -> datetime:
    """Where the history for a window that ends now must begin: a little before the window does."""
    return now - timedelta(seconds=window_seconds) - _MARGIN


def tuples_of(answer: duckdb.DuckDBPyRelation) -> Iterator[tuple[Any, ...]]:
    """The rows of a result, by way of Arrow: with times, several times faster than DuckDB's own tuples."""
    return zip(*(values_of(column) for column in answer.to_arrow_table().columns), strict=True)
