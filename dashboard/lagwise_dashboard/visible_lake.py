"""The lake as a reader sees it who may not see everything: it holds only rows of their clusters and groups.

The rows are left out below the statement, in the views that it reads. So a query cannot forget to, and neither can a
query that is written next year: a table that says nothing of whose its rows are is refused unless it is named here.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lagwise.config.visibility import Visibilities
from lagwise.platform.errors import LakeError
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import BOOLEAN, TEXT, Table
from lagwise.tables.tolerant import TolerantLake

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable

    from lagwise.tables.damage import Damage

#: Tables about Lagwise itself: their rows are about no cluster, no topic and no group.
OF_LAGWISE = (DAMAGED_FILES, TICKS)
_GROUPS, _TOPICS, _CLUSTERS = "visible_groups", "visible_topics", "visible_clusters"
#: What a sample says of a cluster of which some groups are hidden: its groups are the visible ones, other counts are of
#: all groups, and so are those of its errors, whose examples may name any. Its replicas name partitions of all topics.
_OF_A_SAMPLE = f"""* replace (
    case when groups = 0 or cluster in (select cluster from {_CLUSTERS} where whole) then groups else
        (select count(*)::integer from {_GROUPS} as v where v.cluster = "{SAMPLES.name} of all".cluster) end as groups,
    case when cluster in (select cluster from {_CLUSTERS} where whole) then group_partitions end as group_partitions,
    case when cluster in (select cluster from {_CLUSTERS} where whole) then partitions end as partitions,
    case when cluster in (select cluster from {_CLUSTERS} where whole) then errors else
        list_transform(errors, lambda e: {{'kind': e.kind, 'count': null::integer, 'example': null::varchar}})
        end as errors,
    case when cluster in (select cluster from {_CLUSTERS} where whole) then replicas end as replicas
)"""  # noqa: S608 (names of our own)

_NAMES = 'select cluster, "group", topics from group_status order by all'


class VisibleLake(TolerantLake):
    """What some readers see of the ``whole`` lake: through views alone. Whatever else would read a table is refused."""

    def __init__(self, whole: TolerantLake, visibility: Visibilities, key: str) -> None:
        # Nothing of a lake of its own: whatever else reads begins with open().
        self.uri = whole.uri
        self._whole = whole
        self._visibility = visibility
        self._key = key
        self._names: _Names | None = None

    def scan(
        self,
        connection: "duckdb.DuckDBPyConnection",
        table: Table,
        *,
        days: tuple[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> str:
        """As :meth:`Lake.scan`, of the rows that the reader sees."""
        name = self._whole.scan(connection, table, days=days, since=since, until=until)
        if table not in OF_LAGWISE:
            self._narrow(connection, table)
        return name

    def open(self, table: Table) -> "DeltaTable | None":
        raise _refusal(table)

    def select(self, sql: str, table: Table, *, since: datetime | None = None) -> pa.Table | None:
        raise _refusal(table)

    def version(self, table: Table) -> int | None:
        return self._whole.version(table)

    def leave_out(self, tables: Sequence[Table], error: Exception) -> bool:
        return self._whole.leave_out(tables, error)

    @property
    def left_out(self) -> "list[Damage]":
        return self._whole.left_out

    @property
    def key(self) -> str:
        """What answers rest on beside tables: what the reader may see, and what there is of it. Raises LakeError."""
        return self._visible().key

    def _narrow(self, connection: "duckdb.DuckDBPyConnection", table: Table) -> None:
        """Put a view with the visible rows in the place of the table's view. A statement can read a table once."""
        columns = {column.name: column for column in table.columns}
        if "cluster" not in columns:
            raise LakeError(
                f"{table.path} does not say which cluster its rows are about, so only unlimited users see it"
            )
        names = self._visible()
        connection.register(_GROUPS, names.groups)
        connection.register(_TOPICS, names.topics)
        rows, visible = "*", f'semi join {_GROUPS} using (cluster, "group")'
        if "group" in columns and columns["group"].nullable and "topic" in columns:
            # A row without a group is about a topic.
            visible = f"""where case when "group" is null then (cluster, topic) in (from {_TOPICS})
                else (cluster, "group") in (from {_GROUPS}) end"""
        elif "group" not in columns and "topic" in columns:
            visible = f"semi join {_TOPICS} using (cluster, topic)"
        elif "group" not in columns:
            connection.register(_CLUSTERS, self._clusters(connection, table))
            rows, visible = _OF_A_SAMPLE if table is SAMPLES else "*", f"semi join {_CLUSTERS} using (cluster)"
        whole = f"{table.name} of all"
        connection.execute(f'alter view "{table.name}" rename to "{whole}"')
        connection.execute(
            f'create temp view "{table.name}" as select {rows} from "{whole}" {visible}'  # noqa: S608 (own names)
        )

    def _clusters(self, connection: "duckdb.DuckDBPyConnection", table: Table) -> pa.Table:
        """The clusters of a table that the reader sees, and whether they see every group of them."""
        found = connection.sql(f'select distinct cluster from "{table.name}"').fetchall()  # noqa: S608 (own name)
        names = [name for (name,) in found if self._visibility.shows_cluster(name)]
        whole = [self._visibility.shows_all_of(name) for name in names]
        return pa.table({"cluster": pa.array(names, TEXT), "whole": pa.array(whole, BOOLEAN)})

    def _visible(self) -> "_Names":
        version = self._whole.version(GROUP_STATUS)
        if self._names is None or self._names.version != version:
            found = self._whole.query(_NAMES, over=[GROUP_STATUS]).to_pylist()
            seen = [tuple(row.values()) for row in found if self._visibility.shows(row["cluster"], row["group"])]
            groups = [(cluster, group) for cluster, group, _ in seen]
            topics = sorted({(cluster, topic) for cluster, _, topics in seen for topic in topics or ()})
            digest = hashlib.blake2b(repr((self._key, groups, topics)).encode("utf-8", "surrogatepass")).hexdigest()
            self._names = _Names(version, digest, _pairs("group", groups), _pairs("topic", topics))
        return self._names


class _Names(NamedTuple):
    """Of the lake's present groups those that the reader sees, by cluster and name, and the topics that these read."""

    version: int | None
    key: str
    groups: pa.Table
    topics: pa.Table


def _refusal(table: Table) -> LakeError:
    return LakeError(f"{table.path} as a whole is shown to those only who may see every group")


def _pairs(name: str, pairs: Sequence[tuple[str, str]]) -> pa.Table:
    clusters, names = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({"cluster": pa.array(clusters, TEXT), name: pa.array(names, TEXT)})
