"""The newest past that the scaling signal rests on: what arrived and waited, and how many members there were.

Of each group, by time, read from the histories' data files once each.
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

#: The window that is kept of every group. More is kept of a group while longer ones are asked for.
WINDOW_SECONDS = ScalingPolicy().down_after_seconds
#: A window begins with what was seen last before it, but not with what is so much older.
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
    """Since when the past of each group is kept, at one moment."""

    def __init__(self, longer: Mapping[Key, float], now: datetime) -> None:
        self.since = window_start(WINDOW_SECONDS, now)
        of_longer = {key: window_start(seconds, now) for key, seconds in longer.items()}
        self.first = min([self.since, *of_longer.values()])
        rows = [{"cluster": cluster, "group": group, "since": at} for (cluster, group), at in of_longer.items()]
        #: The groups of which more is kept, for the questions.
        self.longer = pa.Table.from_pylist(rows, schema=_EXTENDED)
        self._stamp, self._stamps = _stamp(self.since), {key: _stamp(at) for key, at in of_longer.items()}

    def stamp(self, key: Key) -> int:
        """Since when it is kept of this group."""
        return self._stamps.get(key, self._stamp)


@dataclass(slots=True)
class NewRows:
    """The data files that a table has, and the rows of those that had not been read; ``is_all`` if none had been."""

    files: frozenset[str]
    rows: list[tuple[Any, ...]]
    is_all: bool


class HistoryWindow(Generic[_Moment]):
    """The newest past of a table: of each group what ``made`` made of its rows, by their time."""

    def __init__(self, table: Table, question: str, made: Callable[..., _Moment]) -> None:
        self.table = table
        #: Data files that have been read.
        self.files: frozenset[str] = frozenset()
        self._question = question
        self._made: Callable[..., _Moment] = made
        self._moments: defaultdict[Key, dict[int, _Moment]] = defaultdict(dict)

    def news(self, lake: Lake, connection: duckdb.DuckDBPyConnection, kept: RetainedSpan) -> NewRows:
        """What is new in the lake; nothing is changed by asking."""
        files = lake.scan_new(connection, self.table, self.files, since=kept.first)
        connection.register("longer", kept.longer)
        rows = list(tuples_of(connection.sql(self._question, params={"since": kept.since})))
        return NewRows(files, rows, is_all=not self.files)

    def take(self, news: NewRows) -> None:
        """Put what is new among what is known. A row that was read before, from a file compacted since, is the same."""
        self.files = news.files
        if news.is_all:
            self._moments.clear()
        for cluster, group, at, *seen in news.rows:
            self._moments[cluster, group][at] = self._made(_EPOCH + at * _MICROSECOND, *seen)

    def trim(self, kept: RetainedSpan) -> None:
        """Let go of what need not be kept any more.

        Moments were put in as they passed, but for late ones: what is old stands first, and need not be looked for.
        """
        for key in list(self._moments):
            moments, first = self._moments[key], kept.stamp(key)
            while moments and (oldest := next(iter(moments))) < first:
                del moments[oldest]
            if not moments:
                del self._moments[key]

    def of(self, key: Key, since: datetime) -> list[_Moment]:
        """What is known of a group from ``since`` on."""
        first = _stamp(since)
        return [moment for at, moment in self._moments.get(key, {}).items() if at >= first]


def _stamp(at: datetime) -> int:
    """Microseconds since 1970, as the questions tell times: cheaper than times where there are many."""
    return (at - _EPOCH) // _MICROSECOND


def loads() -> HistoryWindow[Load]:
    """What arrived and waited, round by round."""
    return HistoryWindow(GROUP_HISTORY, _LOADS, lambda at, rate, lag: Load(at, max(0.0, rate), float(lag)))


def members() -> HistoryWindow[Members]:
    """How many members there were, sample by sample."""
    return HistoryWindow(GROUPS, _MEMBERS, Members)


def window_start(window_seconds: float, now: datetime) -> datetime:
    """The beginning of what is needed for a window that ends now."""
    return now - timedelta(seconds=window_seconds) - _MARGIN


def tuples_of(answer: duckdb.DuckDBPyRelation) -> Iterator[tuple[Any, ...]]:
    """The rows of an answer, by way of Arrow: several times as fast as DuckDB's own tuples where there are times."""
    return zip(*(values_of(column) for column in answer.to_arrow_table().columns), strict=True)
