"""The inputs of the scaling signal, in memory. Each version of a table, and each data file of a history, is read once.

A request refreshes the cache, at most every two seconds. That takes a few milliseconds where the lake has nothing new.
In between, requests are answered from memory alone.
"""

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from lagwise.domain.capacity.scaling import Load, Members
from lagwise.domain.sizing.downstream import MEMBERS_INPUT
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import clean
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.duckdb_connection import OUR_MISTAKES, connected
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.scaling import history_windows
from lagwise_app.scaling.history_windows import WINDOW_SECONDS, Key, RetainedSpan, tuples_of, window_start

log = logging.getLogger("lagwise.scaling")

#: Minimum time between two refreshes.
REFRESH_SECONDS = 2.0
#: During a refresh, other requests are answered at once from a cache that is not older than this.
_RECENT_SECONDS = 10.0
#: How long a request waits for the refresh of an older cache.
_WAIT_SECONDS = 5.0
#: How long a longer window is kept after the last request that needs it.
_EXTENDED_FOR_SECONDS = 3600.0

_STATUS = 'select cluster, "group", as_of, members, state from group_status'
_TOPICS = """
    select cluster, "group", topic, count(*), coalesce(sum(produce_rate_per_second), 0)
    from partition_status where status != 'ghost' group by all
"""
_CAPACITY = f"""
    select cluster, "group", topic, member_rate_per_second, hottest_share,
           list_filter(inputs, lambda one: one.name = '{MEMBERS_INPUT}')[1].value::int
    from capacity
"""  # noqa: S608 (own)
_ASSIGNORS = 'select cluster, "group", assignor from assignments'


class NoAnswer(Exception):
    """There is no reliable number, and without one an autoscaler changes nothing. The message says why."""


@dataclass(frozen=True, slots=True)
class TopicRate:
    """A topic that a group reads: its partitions, and records written per second to all of them."""

    topic: str
    partitions: int
    rate: float


@dataclass(frozen=True, slots=True)
class TopicCapacity:
    """The capacity of a group for one topic. None is unknown."""

    #: Records of the topic that one member handles per second.
    member_rate: float | None
    #: Share of the traffic in the hottest partition.
    hottest_share: float | None
    #: Number of members with which the downstream was full.
    downstream_full_with: int | None = None


@dataclass(frozen=True, slots=True)
class ScalingInputs:
    """Everything that the signal for one group rests on."""

    #: The time of its last verdict, like the next two fields.
    as_of: datetime
    members: int | None
    state: str | None
    topics: Sequence[TopicRate]
    capacity: Mapping[str, TopicCapacity]
    #: Whether the assignor assigns each topic by itself, as the range assignor does.
    is_by_topic: bool
    #: Unordered. Begins before the requested window.
    loads: Sequence[Load]
    #: Unordered. Begins before the requested window.
    member_counts: Sequence[Members]
    #: Why the lake cannot be read at the moment.
    read_error: str | None


class LakeCache:
    """The inputs of all groups of one lake. Safe to use from threads: one of them reads the lake at a time.

    While the lake cannot be read, the cache stays as it is, and its inputs age. ``clock`` returns monotonic seconds.
    """

    def __init__(self, lake: Lake, clock: Callable[[], float] = time.monotonic) -> None:
        self._lake, self._clock = lake, clock
        self._duckdb = connected(threads=1, memory_limit="512MB")
        self._refreshing, self._changing = threading.Lock(), threading.Lock()
        self._refreshed_at = -math.inf
        self._versions: dict[str, int | None] = {}
        self._read_error: str | None = None
        self._present: dict[str, dict[Key, Any]] = {}
        self._loads, self._members = history_windows.loads(), history_windows.members()
        #: Groups with a longer window: its seconds, and the time of the last request that needs it.
        self._longer: dict[Key, tuple[float, float]] = {}

    def inputs_of(self, cluster: str, group: str, window_seconds: float, now: datetime) -> ScalingInputs:
        """The inputs of a group, with at least this much of its history.

        Raises UnknownGroup, and NoAnswer where the lake has not been read yet.
        """
        key = cluster, group
        self._refresh_if_due(now)
        if self._is_too_short(key, window_seconds):
            with self._refreshing:
                if self._is_too_short(key, window_seconds):
                    self._extend(key, window_seconds)
                    self._refresh(now)
        with self._changing:
            if not self._present:
                raise NoAnswer(self._read_error or "the lake is being read for the first time: ask again")
            status = self._present[GROUP_STATUS.name].get(key)
            if status is None:
                raise UnknownGroup(cluster, group)
            as_of, members, state = status
            since = window_start(window_seconds, now)
            return ScalingInputs(
                as_of,
                members,
                state,
                topics=self._present[PARTITION_STATUS.name].get(key, ()),
                capacity=self._present[CAPACITY.name].get(key, {}),
                is_by_topic=self._present[ASSIGNMENTS.name].get(key) == "range",
                loads=self._loads.of(key, since),
                member_counts=self._members.of(key, since),
                read_error=self._read_error,
            )

    def _refresh_if_due(self, now: datetime) -> None:
        age = self._clock() - self._refreshed_at
        if age < REFRESH_SECONDS or not self._refreshing.acquire(
            timeout=0.0 if age < _RECENT_SECONDS else _WAIT_SECONDS
        ):
            return
        try:
            if self._clock() - self._refreshed_at >= REFRESH_SECONDS:  # else another request has refreshed it
                self._refresh(now)
        finally:
            self._refreshing.release()

    def _is_too_short(self, key: Key, window_seconds: float) -> bool:
        """Whether less of the group's history is kept than the window needs."""
        if window_seconds <= WINDOW_SECONDS or key not in self._present.get(GROUP_STATUS.name, ()):
            return False
        kept, _ = self._longer.get(key, (0.0, 0.0))
        if window_seconds <= kept:
            self._longer[key] = kept, self._clock()
        return window_seconds > kept

    def _extend(self, key: Key, window_seconds: float) -> None:
        # Whole hours, so that slightly different windows do not each cause everything to be read again.
        self._longer[key] = math.ceil(window_seconds / 3600.0) * 3600.0, self._clock()
        self._forget_versions()

    def _forget_versions(self) -> None:
        """Make the next refresh read everything."""
        self._versions = {}
        self._loads.files = self._members.files = frozenset()

    def _refresh(self, now: datetime) -> None:
        """Read what is new, all of it or nothing. The caller holds ``_refreshing``."""
        began = self._clock()
        self._longer = {k: v for k, v in self._longer.items() if began - v[1] <= _EXTENDED_FOR_SECONDS}
        try:
            self._read(RetainedSpan({key: seconds for key, (seconds, _) in self._longer.items()}, now))
        except OUR_MISTAKES:
            raise
        except (LakeError, duckdb.Error, OSError) as error:
            self._forget_versions()
            if self._read_error is None:
                log.warning(
                    "cannot read the lake, so answers rest on the last data that was read: %s",
                    clean(in_a_line(error)),
                    extra=event(LogEvent.LAKE_UNREADABLE),
                )
            self._read_error = f"the lake cannot be read: {clean(in_a_line(error))}"
        else:
            if self._read_error is not None:
                log.info("the lake can be read again", extra=event(LogEvent.LAKE_UNREADABLE, over=True))
            self._read_error = None
        finally:
            self._refreshed_at = self._clock()

    def _read(self, kept: RetainedSpan) -> None:
        versions = {table.name: self._lake.version(table) for table in _PRESENT}
        versions |= {window.table.name: self._lake.version(window.table) for window in (self._loads, self._members)}
        if versions[GROUP_STATUS.name] is None:
            raise LakeError(f"no analysis has written to {self._lake.uri}", code=ErrorCode.NO_RESULTS)
        new = {name for name, version in versions.items() if self._versions.get(name, -1) != version}
        present = {table.name: read(self._rows(table, question)) for table, (question, read) in _PRESENT.items()
                   if table.name in new}  # fmt: skip
        changed = [window for window in (self._loads, self._members) if window.table.name in new]
        news = [(window, window.read_new(self._lake, self._duckdb, kept)) for window in changed]
        with self._changing:
            self._present = {**self._present, **present}
            for window, rows in news:
                window.add(rows)
                window.trim(kept)
        self._versions = versions

    def _rows(self, table: Table, question: str) -> Iterator[tuple[Any, ...]]:
        self._lake.scan(self._duckdb, table)
        return tuples_of(self._duckdb.sql(question))


def _by_group(rows: Iterator[tuple[Any, ...]]) -> dict[Key, Any]:
    return {(cluster, group): values[0] if len(values) == 1 else tuple(values) for cluster, group, *values in rows}


def _topics(rows: Iterator[tuple[Any, ...]]) -> dict[Key, Any]:
    found: defaultdict[Key, list[TopicRate]] = defaultdict(list)
    for cluster, group, topic, partitions, rate in rows:
        found[cluster, group].append(TopicRate(topic, partitions, rate))
    return dict(found)


def _capacity(rows: Iterator[tuple[Any, ...]]) -> dict[Key, Any]:
    found: defaultdict[Key, dict[str, TopicCapacity]] = defaultdict(dict)
    for cluster, group, topic, *capacity in rows:
        found[cluster, group][topic] = TopicCapacity(*capacity)
    return dict(found)


#: The tables of the present state, each with its query and the function that arranges the rows by group.
_PRESENT: Mapping[Table, tuple[str, Callable[[Iterator[tuple[Any, ...]]], dict[Key, Any]]]] = {
    GROUP_STATUS: (_STATUS, _by_group),
    PARTITION_STATUS: (_TOPICS, _topics),
    CAPACITY: (_CAPACITY, _capacity),
    ASSIGNMENTS: (_ASSIGNORS, _by_group),
}
