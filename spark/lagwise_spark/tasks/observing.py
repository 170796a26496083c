"""What groups read within whole hours, and the minutes in which they, or their members, were saturated."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.capacity.habits import habits_of, had_backlog, hourly_throughput
from lagwise.domain.capacity.saturated_minutes import ownership_of, saturated_minutes
from lagwise.domain.verdicts.buckets import HOUR, MINUTE
from lagwise.domain.verdicts.columns import Array, Columns, start_of, taken
from lagwise.tables.capacity import THROUGHPUT
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES
from lagwise.tables.raw import MEMBERS
from lagwise_spark.tasks.arrow_columns import Numbering, arrow_of, columns_of, combined, numbers_of, places_in
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles

#: The name of the saturated minutes, which are no table of the lake.
SATURATED_MINUTES = "saturated_minutes"
#: Groups and members whose saturated minutes are taken of a stretch: those with most of them. There are more only where
#: half a large cluster lags.
MOST_READERS = 5_000

#: Who reads: a member, or where that is null the whole group.
OF_READER = ("cluster", "group", "topic", "member")
_SATURATED = pa.schema(
    [
        *((name, pa.string()) for name in OF_READER),
        *((name, pa.float64()) for name in ("start", "moved_at", "cadence_seconds")),
        *((name, pa.int64()) for name in ("committed", "lag", "members", "partitions")),
    ]
)
_OF_FIVES = (
    "minute", "first_at", "last_at", "first_committed", "last_committed", "max_lag", "moves", "backlog_seconds",
)  # fmt: skip
_OF_MINUTES = (
    "minute", "samples", "last_at", "last_committed", "last_lag", "sum_lag", "sum_lag_lag", "moves", "last_moved_at",
    "rewound_from",
)  # fmt: skip
#: Room for so many groups and topics of a cluster, and partitions of a topic: what names come later changes no number.
_ROOM = 1 << 19


@dataclass(frozen=True)
class HourSpan:
    """Whole hours of a cluster, from ``start`` up to ``until`` (microseconds since the epoch)."""

    cluster: str
    start: int
    until: int


def observed_hours(
    files: LakeFiles, span: HourSpan, samples: frozenset[str], within: KeyRange
) -> Iterator[tuple[str, pa.Table]]:
    """Rows of `throughput`, without what is not known of one topic alone, and :data:`SATURATED_MINUTES`, the fields of
    :class:`lagwise.domain.capacity.saturation.SaturatedMinute` of each reader. The range holds whole topics of one
    cluster; ``samples`` are those whose members count as the owners."""
    of_range = _Range(files, span, within)
    habits = of_range.habits
    yield THROUGHPUT.name, of_range.rows(hourly_throughput(of_range.fives, habits), THROUGHPUT.without_day)
    lagging = had_backlog(habits)
    if lagging.any():
        minutes = of_range.minutes(lagging)
        ownership = ownership_of(of_range.seen_members(np.unique(habits["group_topic"][lagging]), samples))
        yield SATURATED_MINUTES, of_most(of_range.rows(saturated_minutes(minutes, habits, ownership), _SATURATED))


def of_most(minutes: pa.Table) -> pa.Table:
    """The saturated minutes of the readers with most of them, where there are very many."""
    if minutes.num_rows <= 60 * MOST_READERS:
        return minutes
    names = [minutes[name] for name in OF_READER]
    reader = pc.binary_join_element_wise(*names, "\0", null_handling="replace")
    number = reader.combine_chunks().dictionary_encode().indices.to_numpy()
    most = np.argsort(-np.bincount(number), kind="stable")[:MOST_READERS]
    return minutes.filter(pa.array(np.isin(number, most)))


class _Range:
    """Rows of a range of one cluster as columns. Minutes and members are read once it is known of which topics."""

    def __init__(self, files: LakeFiles, span: HourSpan, within: KeyRange) -> None:
        self._files, self._span, self._within = files, span, within
        self._names = {name: Numbering() for name in ("cluster", "group", "topic", "member", "member_id")}
        rows = files.rows(FIVE_MINUTES, ("group", *_OF_FIVES), within, keep=self._is_within)
        fives = columns_of(rows, FIVE_MINUTES.without_day, _OF_FIVES) | {"group_topic": self._group_topic(rows)}
        fives["pair"] = fives["group_topic"] * _ROOM + numbers_of(rows["partition"])
        self.fives = taken(fives, np.lexsort((fives["minute"], fives["pair"])))
        self.habits = habits_of(self.fives)
        self._known = self._in_hour(self.habits["pair"], self.habits["hour"])

    def minutes(self, wanted: Array) -> dict[str, Array]:
        """Those of the group-topics and hours of these habits, in order of habit and time."""
        theirs = np.unique(self._in_hour(self.habits["group_topic"], self.habits["hour"])[wanted])

        def keep(rows: pa.Table) -> Array:
            return np.isin(self._in_hour(self._group_topic(rows), numbers_of(rows["minute"])), theirs)

        rows = self._files.rows(MINUTES, ("group", *_OF_MINUTES), self._within, keep=keep)
        minutes = columns_of(rows, MINUTES.without_day, _OF_MINUTES)
        habit = self._habit(self._group_topic(rows), numbers_of(rows["partition"]), minutes["minute"])
        order = np.lexsort((minutes["minute"], habit))
        return taken(minutes | {"habit": habit}, order[habit[order] >= 0])

    def seen_members(self, group_topics: Array, samples: frozenset[str]) -> dict[str, Array]:
        """Who was seen to own which partitions of these: habit, minute, member, member_id."""
        names, groups = self._names, np.unique(group_topics // _ROOM)

        def keep(rows: pa.Table) -> Array:
            is_here = names["cluster"].of(rows["cluster"]) == names["cluster"].number(self._span.cluster)
            kept: Array = is_here & np.isin(names["group"].of(rows["group"]), groups)
            return kept

        columns = ("sampled_at", "group", "member_id", "client_id", "host", "assignment")
        rows = self._files.rows(MEMBERS, columns, KeyRange(), only={"sample_id": samples}, keep=keep)
        client, host = (pc.fill_null(rows[name].cast(pa.string()), "?") for name in ("client_id", "host"))
        of_row = {
            "minute": start_of(MINUTE, numbers_of(rows["sampled_at"])),
            "member": names["member"].of(pc.binary_join_element_wise(client, " (", host, ")", "")),
            "member_id": names["member_id"].of(rows["member_id"]),
            "group": names["group"].of(rows["group"]),
        }
        row, owned = _flattened(rows["assignment"].combine_chunks())
        group_topic = of_row["group"][row] * _ROOM + names["topic"].of(owned.field("topic"))
        wanted = np.isin(group_topic, group_topics)
        entry, partition = _flattened(owned.field("partitions").filter(pa.array(wanted)))
        row, group_topic = row[wanted][entry], group_topic[wanted][entry]
        seen = {name: of_row[name][row] for name in ("minute", "member", "member_id")}
        seen["habit"] = self._habit(group_topic, numbers_of(partition), seen["minute"])
        return taken(seen, seen["habit"] >= 0)

    def rows(self, made: Columns, schema: pa.Schema) -> pa.Table:
        """What was made of group-topics, or of their members, as rows; columns that it does not have are null."""
        count = len(made["group_topic"])
        named = {
            "cluster": pa.array([self._span.cluster] * count, pa.string()),
            "group": self._names["group"].named(made["group_topic"] // _ROOM),
            "topic": self._names["topic"].named(made["group_topic"] % _ROOM),
        }
        if "member" in made:
            named["member"] = self._names["member"].named(made["member"])
        columns = {f.name: arrow_of(made[f.name], f.type) for f in schema if f.name in made and f.name not in named}
        return pa.table(named | columns, schema=pa.schema([f for f in schema if f.name in named | columns]))

    def _group_topic(self, rows: pa.Table) -> Array:
        return combined([self._names[name].of(rows[name]) for name in ("group", "topic")], (_ROOM, _ROOM))

    def _is_within(self, rows: pa.Table) -> Array:
        minute = numbers_of(rows["minute"])
        is_within: Array = (minute >= self._span.start) & (minute < self._span.until)
        return is_within

    def _in_hour(self, number: Array, time: Array) -> Array:
        """One number for a number and an hour of the span. All that lies outside of it counts as one more hour."""
        hours = (self._span.until - self._span.start) // HOUR
        made: Array = number * (hours + 1) + np.clip((time - self._span.start) // HOUR, -1, hours)
        return made

    def _habit(self, group_topic: Array, partition: Array, minute: Array) -> Array:
        """The row of the habits of this pair in this hour; -1 where there is none."""
        return places_in(self._known, self._in_hour(group_topic * _ROOM + partition, minute))


def _flattened(lists: pa.ListArray) -> tuple[Array, pa.Array]:
    """The elements of all lists, each with the number of its list."""
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(lists)), sizes), lists.flatten()
