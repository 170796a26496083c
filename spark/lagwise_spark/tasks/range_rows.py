"""Rows of a range of topic-partitions as columns, with numbers for names, topic-partitions and group-partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.buckets import EARLIEST, SUMS
from lagwise.domain.verdicts.columns import NEVER, NULL, Array, Columns, Ranges, taken
from lagwise.domain.verdicts.logs import Logs
from lagwise.tables.schema import Table
from lagwise_spark.tasks.arrow_columns import (
    Numbering,
    arrow_of,
    column_of_parts,
    columns_of,
    combined,
    in_one,
    lists_of,
    stacked,
    table_of,
)
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.row_groups import KEY, RowGroup

_NUMBERED = ("cluster", "group", "topic", "owner", "topic_id", "sample_id")
OF_LOG, OF_PAIR = KEY, ("cluster", "group", "topic", "partition")
#: Where numbers go up to so many times their count, a table of all of them is quicker than sorting.
_SHARE_OF_KEYS = 8
#: First and last of a bucket of a log.
_LOG_ENDS = (
    "minute", "first_log_start", "last_log_start", "first_high_watermark", "last_high_watermark", "first_at", "last_at",
)  # fmt: skip
#: Columns of `watermark_minutes` that histories are made of.
LOG_COLUMNS = (*_LOG_ENDS, "reset_at", "recreated_at", "points")


@dataclass(frozen=True)
class Keys:
    """What the numbers in columns stand for.

    Attributes:
        names: of each kind of name, by the column that holds it.
        logs: cluster, topic, partition of each topic-partition, by the number in ``log``.
        pairs: group, log of each group-partition, by the number in ``pair``.
    """

    names: Mapping[str, Numbering]
    logs: Columns
    pairs: Columns

    def cluster_of(self, pair: Array) -> Array:
        """The number of the cluster of group-partitions."""
        return self.logs["cluster"][self.pairs["log"][pair]]

    def of_logs(self, log: Array) -> dict[str, pa.Array]:
        """The key columns of rows of topic-partitions."""
        return {
            "cluster": self.names["cluster"].named(self.logs["cluster"][log]),
            "topic": self.names["topic"].named(self.logs["topic"][log]),
            "partition": arrow_of(self.logs["partition"][log], pa.int32()),
        }

    def of_pairs(self, pair: Array) -> dict[str, pa.Array]:
        """The key columns of rows of group-partitions."""
        group = self.names["group"].named(self.pairs["group"][pair])
        return {"group": group, **self.of_logs(self.pairs["log"][pair])}


class RangeReader:
    """Reads rows of one range. Their group-partitions are numbered by :meth:`keys`, once all has been read.

    ``clusters`` have the numbers of their places.
    """

    def __init__(self, files: LakeFiles, within: KeyRange, clusters: Sequence[str]) -> None:
        self._files, self._within = files, within
        self.names = {name: Numbering() for name in _NUMBERED}
        for cluster in clusters:
            self.names["cluster"].number(cluster)
        self._read: list[dict[str, Array]] = []

    def rows(self, table: Table, columns: Sequence[str]) -> pa.Table:
        """Rows as Arrow, for :meth:`numbered`."""
        return self._files.rows(table, columns, self._within)

    def read(self, table: Table, columns: Sequence[str], samples: Collection[str] | None = None) -> dict[str, Array]:
        """Rows as columns; ``samples`` are the only ones wanted."""
        return self._columns(table, columns, {} if samples is None else {"sample_id": samples}, {})

    def buckets(self, table: Table) -> dict[str, Array]:
        """Rows of `minutes`, or of what these are merged into, as buckets: what adds up is 0 where it is null, and what
        is the first of its kind is later than all."""
        columns = [column.name for column in table.columns]
        return self._columns(table, columns, {}, dict.fromkeys(SUMS, 0) | dict.fromkeys(EARLIEST, NEVER))

    def _columns(
        self, table: Table, columns: Sequence[str], only: Mapping[str, Collection[str]], nulls: Mapping[str, int]
    ) -> dict[str, Array]:
        parts = list(self._files.parts(table, columns, self._within, only))
        schema = table.without_day
        made = {
            name: self._numbers(parts, name)
            if name in self.names
            else column_of_parts(parts, schema.field(name), nulls.get(name, NULL))
            for name in columns
        }
        self._read.append(made)
        return made

    def _numbers(self, parts: Sequence[RowGroup], name: str) -> Array:
        numbering = self.names[name]
        return in_one(
            parts,
            np.dtype(np.int64),
            lambda part: numbering.number(part.same[name]) if name in part.same else numbering.of(part.columns[name]),
        )

    def numbered(self, rows: pa.Table, table: Table, columns: Sequence[str]) -> dict[str, Array]:
        """Rows as columns."""
        schema = table.without_day
        made = {
            name: self.names[name].of(rows[name]) if name in self.names else columns_of(rows, schema, [name])[name]
            for name in columns
        }
        self._read.append(made)
        return made

    def keys(self) -> Keys:
        """Numbers all that has been read: tables get a column ``log``, and ``pair`` where they have groups."""
        names, tables = self.names, self._read
        most = 1 + max((int(table["partition"].max(initial=0)) for table in tables), default=0)
        sizes = (len(names["cluster"]), len(names["topic"]), most)
        logs = _number(tables, "log", [combined([table[name] for name in OF_LOG], sizes) for table in tables])
        paired = [table for table in tables if "group" in table]
        groups = max(1, len(names["group"]))
        of_pair = (len(logs), groups)
        pairs = _number(paired, "pair", [combined([table["log"], table["group"]], of_pair) for table in paired])
        return Keys(
            names=names,
            logs={
                "cluster": logs // (sizes[1] * most) if sizes[1] else logs,
                "topic": logs // most % max(1, sizes[1]),
                "partition": logs % most,
            },
            pairs={"group": pairs % groups, "log": pairs // groups},
        )


def _number(tables: Sequence[dict[str, Array]], name: str, keys: Sequence[Array]) -> Array:
    """Give each table a column with the places of its keys among all distinct ones, which are returned."""
    most = max((int(key.max(initial=-1)) for key in keys), default=-1)
    if most < _SHARE_OF_KEYS * sum(map(len, keys)):
        is_there = np.zeros(most + 1, bool)
        for key in keys:
            is_there[key] = True
        distinct = np.flatnonzero(is_there)
        place = np.cumsum(is_there) - 1
        for table, key in zip(tables, keys, strict=True):
            table[name] = place[key]
    else:
        distinct = np.unique(np.concatenate(keys))
        for table, key in zip(tables, keys, strict=True):
            table[name] = np.searchsorted(distinct, key)
    return distinct


def bucket_rows(rows: Columns, keys: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """Buckets as rows of `minutes`, or of what these are merged into."""

    def column(field: pa.Field) -> pa.Array:
        if field.name in keys:
            return keys[field.name]
        values = rows[field.name]
        if field.name in EARLIEST:
            values = np.where(values == NEVER, NULL, values)
        if field.name in ("rewound_records", "lost_at_least", "lost_at_most"):
            values = np.where(values == 0, NULL, values)
        return arrow_of(values, field.type)

    return pa.Table.from_arrays([column(field) for field in schema], schema=schema)


def logs_of(parts: Sequence[tuple[Columns, pa.Table, Array]]) -> Logs:
    """A history from rows of `watermark_minutes`, or of what these are merged into: as columns, as Arrow (for the
    points), and which of them count."""
    nothing = {"log": np.zeros(0, np.int64), "at": np.zeros(0, np.int64), "high_watermark": np.zeros(0, np.int64)}
    ends, points = [], [nothing]
    resets = [{"log": nothing["log"], "at": nothing["at"], "is_recreation": np.zeros(0, bool)}]
    for rows, arrow, mask in parts:
        its = taken(rows, mask)
        ends.append({name: its[name] for name in ("log", *_LOG_ENDS)})
        for at, is_recreation in (("reset_at", False), ("recreated_at", True)):
            there = taken({"log": its["log"], "at": its[at]}, its[at] != NULL)
            resets.append({**there, "is_recreation": np.full(len(there["at"]), is_recreation)})
        if arrow.num_rows:
            lists = arrow["points"].combine_chunks()
            owner = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy(zero_copy_only=False))
            flat, held = lists.flatten(), mask[owner]
            of_points = {
                name: flat.field(name).cast(pa.int64()).to_numpy(zero_copy_only=False)[held]
                for name in ("at", "high_watermark")
            }
            points.append({"log": rows["log"][owner][held], **of_points})
    return Logs(stacked(points), stacked(ends), stacked(resets))


def log_bucket_rows(
    rows: Columns, points: Ranges, of: Columns, keys: Mapping[str, pa.Array], schema: pa.Schema
) -> pa.Table:
    """Buckets of logs, with the points they hold, as rows of `watermark_minutes`, or of what these are merged into."""
    _, place = points.rows()
    return table_of(
        rows, {**keys, "points": lists_of(points.sizes, taken(of, place), schema.field("points").type)}, schema
    )


def joined_logs(parts: Sequence[Logs]) -> Logs:
    """Several histories in one, in order of log and time."""
    points, ends, resets = (stacked([getattr(part, name) for part in parts]) for name in ("points", "ends", "resets"))
    return Logs(
        taken(points, np.lexsort((points["at"], points["log"]))),
        taken(ends, np.lexsort((ends["first_at"], ends["log"]))),
        taken(resets, np.lexsort((resets["at"], resets["log"]))),
    )
