"""What the scaling signal rests on, in memory: each version of a table, and each data file of a history, is read once.

The lake is looked at while somebody asks, and at most every two seconds: that takes a few milliseconds where nothing is
new. In between, an answer takes nothing from the lake.
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
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.duckdb_connection import OUR_MISTAKES, connected
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_app.scaling import history_windows
from lagwise_app.scaling.history_windows import WINDOW_SECONDS, Key, RetainedSpan, tuples_of, window_start

log = logging.getLogger("lagwise.scaling")

#: How often the lake is looked at, at most.
REFRESH_SECONDS = 2.0
#: While one caller looks, others are answered at once from what was known so shortly before …
_RECENT_SECONDS = 10.0
#: … and otherwise wait for it, for so long at most.
_WAIT_SECONDS = 5.0
#: A longer window is kept for so long after it was last asked for.
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


class UnknownGroup(LookupError):
    """Nothing is known of a group of this name."""


class NoAnswer(Exception):
    """No number can be answered for, and an autoscaler that gets none leaves alone what runs. The message says why."""


@dataclass(frozen=True, slots=True)
class TopicRate:
    """A topic that a group reads: its partitions, and records written per second to all of them."""

    topic: str
    partitions: int
    rate: float


@dataclass(frozen=True, slots=True)
class TopicCapacity:
    """What one member does of a topic, records per second, the hottest partition's share, and with how many members
    the downstream was full; None is not known."""

    member_rate: float | None
    hottest_share: float | None
    downstream_full_with: int | None = None


@dataclass(frozen=True, slots=True)
class ScalingInputs:
    """What is known of one group.

    ``as_of``, ``members`` and ``state`` are those of its last verdict. ``loads`` and ``seen`` (its members) begin
    before the window that was asked for, and are in no order. ``trouble`` is why the lake cannot be read just now.
    """

    as_of: datetime
    members: int | None
    state: str | None
    topics: Sequence[TopicRate]
    capacity: Mapping[str, TopicCapacity]
    is_by_topic: bool
    loads: Sequence[Load]
    seen: Sequence[Members]
    trouble: str | None


class LakeCache:
    """What is known of all groups of one lake. Safe to use from threads: one of them looks at the lake at a time.

    While the lake cannot be read, what is known stays as if nothing new had been written: all of it has its age.
    ``clock`` counts seconds and never goes back.
    """

    def __init__(self, lake: Lake, clock: Callable[[], float] = time.monotonic) -> None:
        self._lake, self._clock = lake, clock
        self._duckdb = connected(threads=1, memory_limit="512MB")
        self._looking, self._changing = threading.Lock(), threading.Lock()
        self._looked_at = -math.inf
        self._versions: dict[str, int | None] = {}
        self._trouble: str | None = None
        self._present: dict[str, dict[Key, Any]] = {}
        self._loads, self._seen = history_windows.loads(), history_windows.members()
        #: Groups of which a longer window is kept: its seconds, and when it was last asked for.
        self._longer: dict[Key, tuple[float, float]] = {}

    def known(self, cluster: str, group: str, window_seconds: float, now: datetime) -> ScalingInputs:
        """What is known of a group, with at least so much of its past.

        Raises UnknownGroup, and NoAnswer where the lake has not been read yet.
        """
        key = cluster, group
        self._look_if_due(now)
        if self._is_too_short(key, window_seconds):
            with self._looking:
                if self._is_too_short(key, window_seconds):
                    self._keep_longer(key, window_seconds)
                    self._look(now)
        with self._changing:
            if not self._present:
                raise NoAnswer(self._trouble or "the lake is being read for the first time: ask again")
            status = self._present[GROUP_STATUS.name].get(key)
            if status is None:
                raise UnknownGroup(f"no group {group!r} is known in cluster {cluster!r}")
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
                seen=self._seen.of(key, since),
                trouble=self._trouble,
            )

    def _look_if_due(self, now: datetime) -> None:
        age = self._clock() - self._looked_at
        if age < REFRESH_SECONDS or not self._looking.acquire(timeout=0.0 if age < _RECENT_SECONDS else _WAIT_SECONDS):
            return
        try:
            if self._clock() - self._looked_at >= REFRESH_SECONDS:  # else another caller has looked meanwhile
                self._look(now)
        finally:
            self._looking.release()

    def _is_too_short(self, key: Key, window_seconds: float) -> bool:
        """Whether less of the group's past is kept than the window needs."""
        if window_seconds <= WINDOW_SECONDS or key not in self._present.get(GROUP_STATUS.name, ()):
            return False
        kept, _ = self._longer.get(key, (0.0, 0.0))
        if window_seconds <= kept:
            self._longer[key] = kept, self._clock()
        return window_seconds > kept

    def _keep_longer(self, key: Key, window_seconds: float) -> None:
        # Whole hours, so that windows that differ a little do not have everything read again for each.
        self._longer[key] = math.ceil(window_seconds / 3600.0) * 3600.0, self._clock()
        self._forget_versions()

    def _forget_versions(self) -> None:
        """Have everything read at the next look."""
        self._versions = {}
        self._loads.files = self._seen.files = frozenset()

    def _look(self, now: datetime) -> None:
        """Read what is new: all of it or nothing. Only while holding ``_looking``."""
        began = self._clock()
        self._longer = {k: v for k, v in self._longer.items() if began - v[1] <= _EXTENDED_FOR_SECONDS}
        try:
            self._read(RetainedSpan({key: seconds for key, (seconds, _) in self._longer.items()}, now))
        except OUR_MISTAKES:
            raise
        except (LakeError, duckdb.Error, OSError) as error:
            self._forget_versions()
            if self._trouble is None:
                log.warning("cannot read the lake, answers rest on what is known: %s", clean(in_a_line(error)))
            self._trouble = f"the lake cannot be read: {clean(in_a_line(error))}"
        else:
            if self._trouble is not None:
                log.info("the lake can be read again")
            self._trouble = None
        finally:
            self._looked_at = self._clock()

    def _read(self, kept: RetainedSpan) -> None:
        versions = {table.name: self._lake.version(table) for table in _PRESENT}
        versions |= {window.table.name: self._lake.version(window.table) for window in (self._loads, self._seen)}
        if versions[GROUP_STATUS.name] is None:
            raise LakeError(f"no analysis has written to {self._lake.uri}")
        new = {name for name, version in versions.items() if self._versions.get(name, -1) != version}
        present = {table.name: read(self._rows(table, question)) for table, (question, read) in _PRESENT.items()
                   if table.name in new}  # fmt: skip
        changed = [window for window in (self._loads, self._seen) if window.table.name in new]
        news = [(window, window.news(self._lake, self._duckdb, kept)) for window in changed]
        with self._changing:
            self._present = {**self._present, **present}
            for window, rows in news:
                window.take(rows)
                window.trim(kept)
        self._versions = versions

    def _rows(self, table: Table, question: str) -> Iterator[tuple[Any, ...]]:
        self._lake.scan(self._duckdb, table)
        return tuples_of(self._duckdb.sql(question))


def _by_group(rows: Iterator[tuple[Any, ...]]) -> dict[Key, Any]:
    return {(cluster, group): seen[0] if len(seen) == 1 else tuple(seen) for cluster, group, *seen in rows}


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


#: The tables of the present state: what is asked of each, and how the rows are kept, by group.
_PRESENT: Mapping[Table, tuple[str, Callable[[Iterator[tuple[Any, ...]]], dict[Key, Any]]]] = {
    GROUP_STATUS: (_STATUS, _by_group),
    PARTITION_STATUS: (_TOPICS, _topics),
    CAPACITY: (_CAPACITY, _capacity),
    ASSIGNMENTS: (_ASSIGNORS, _by_group),
}
