"""The partitions of a group, and the clusters and topics of all groups that a caller may see."""

from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.config.visibility import Visibility
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.arrow_values import rows_of
from lagwise.tables.store import Lake
from lagwise_app.answers.groups import Row, group, visible_groups
from lagwise_app.answers.kept import KeptResult
from lagwise_app.terminal import lake_queries

_COLUMNS = ("cluster", "group", *lake_queries.PARTITION_COLUMNS, "committed_since")


class UnknownTopic(LookupError):
    """No group that the caller may see reads this topic."""


def partitions(lake: Lake, cluster: str, name: str, visibility: Visibility) -> list[Row]:
    """The partitions of one group, by topic and partition. Raises UnknownGroup and LakeError."""
    group(lake, cluster, name, visibility)
    return _PARTITIONS.of(lake).of(cluster, name)


def clusters(lake: Lake, visibility: Visibility) -> list[str]:
    """The clusters with groups that the caller may see. Raises LakeError."""
    return sorted({row["cluster"] for row in visible_groups(lake, visibility)})


def topics(lake: Lake, cluster: str, visibility: Visibility) -> list[str]:
    """The topics that visible groups of a cluster read. Raises LakeError."""
    return sorted(pc.unique(_visible(lake, cluster, visibility)["topic"]).to_pylist())


def readers(lake: Lake, cluster: str, topic: str, visibility: Visibility) -> list[str]:
    """The visible groups that read a topic. Raises UnknownTopic and LakeError."""
    return sorted(pc.unique(_of_topic(lake, cluster, topic, visibility)["group"]).to_pylist())


def high_watermarks(lake: Lake, cluster: str, topic: str, visibility: Visibility) -> dict[int, int | None]:
    """The high watermarks of a topic by partition, None where unknown. Raises UnknownTopic and LakeError."""
    rows = _of_topic(lake, cluster, topic, visibility)
    newest = rows.group_by("partition").aggregate([("high_watermark", "max")]).to_pylist()
    return {row["partition"]: row["high_watermark_max"] for row in newest}


@dataclass(frozen=True, slots=True)
class _Partitions:
    """All rows of ``partition_status`` by cluster, group, topic and partition, and where those of each group are."""

    rows: pa.Table
    places: dict[tuple[str, str], tuple[int, int]]

    def of(self, cluster: str, group: str) -> list[Row]:
        return rows_of(self.rows.slice(*self.places.get((cluster, group), (0, 0))))


def _visible(lake: Lake, cluster: str, visibility: Visibility) -> pa.Table:
    kept = _PARTITIONS.of(lake)
    names = [group for where, group in kept.places if where == cluster and visibility.shows(where, group)]
    return kept.rows.filter(
        pc.and_(pc.equal(kept.rows["cluster"], cluster), pc.is_in(kept.rows["group"], pa.array(names, pa.string())))
    )


def _of_topic(lake: Lake, cluster: str, topic: str, visibility: Visibility) -> pa.Table:
    rows = _visible(lake, cluster, visibility)
    rows = rows.filter(pc.equal(rows["topic"], topic))
    if not rows.num_rows:
        raise UnknownTopic(f"no group is known to read {topic!r} in cluster {cluster!r}")
    return rows


def _read(lake: Lake) -> _Partitions:
    columns = ", ".join(f'"{column}"' for column in _COLUMNS)
    question = f'select {columns} from partition_status order by cluster, "group", topic, partition'  # noqa: S608 (own)
    rows = lake.query(question, over=[PARTITION_STATUS])
    places, start = {}, 0
    for key, run in groupby(zip(rows["cluster"].to_pylist(), rows["group"].to_pylist(), strict=True)):
        number = sum(1 for _ in run)
        places[key] = start, number
        start += number
    return _Partitions(rows, places)


#: A round writes the partitions right before the groups.
_PARTITIONS = KeptResult(PARTITION_STATUS, _read)
