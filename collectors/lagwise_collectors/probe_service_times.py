"""From the metadata of commits to rows of ``raw/service_times``: each measurement of a probe once.

A consumer commits its measurement with every partition, again and again until it has a new one. A row is written when a
text is new to its group and topic, for the lowest partition that has it. Cheap for 100,000 commits without such texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.capacity.service_times import PREFIX, MeasuredBy, ServiceTimes, parse_service_times
from lagwise.tables.raw import COMMITS, MEMBERS
from lagwise.tables.schema import no_rows
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.sample_builder import columns_of, rows_from_columns

#: Group, topic and text.
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ProbeMeasurements:
    """The texts seen in the last sample (None before the first one), and the rows of what was new in it."""

    seen: frozenset[_Key] | None
    rows: pa.Table


def new_measurements(seen: frozenset[_Key] | None, snapshot: Snapshot) -> ProbeMeasurements:
    """The measurements in a snapshot that were not in the one before, whose texts are ``seen``.

    After a start, a measurement without its time could be days old: its text is only remembered. Of groups that could
    not be read, the texts stay seen; so do all where nothing could be read.
    """
    commits = snapshot.rows(COMMITS)
    nothing = no_rows(SERVICE_TIMES.arrow)
    if commits.num_rows == 0:
        return ProbeMeasurements(seen, nothing)
    found = _probed(commits)
    unread = snapshot.unreadable_groups if seen else set()
    present = frozenset(found) | {key for key in seen or () if key[0] in unread}
    new: list[tuple[_Key, int, str | None, ServiceTimes]] = []
    for key in found.keys() - (seen or frozenset()):
        measured = parse_service_times(key[2])
        if measured is not None and not (seen is None and measured.ended_at is None):
            new.append((key, *found[key], measured))
    return ProbeMeasurements(present, _rows(sorted(new, key=lambda one: one[0]), snapshot) if new else nothing)


def _probed(commits: pa.Table) -> Mapping[_Key, tuple[int, str | None]]:
    """Partition and owner by group, topic and text: the lowest partition of each."""
    metadata = commits["metadata"].combine_chunks()
    if not pa.types.is_dictionary(metadata.type):
        metadata = metadata.dictionary_encode()
    texts = pc.starts_with(metadata.dictionary, PREFIX)
    if not pc.any(texts).as_py():
        return {}
    mask = pc.fill_null(pc.take(texts, metadata.indices), False)
    wanted = ("group", "topic", "metadata", "partition", "owner")
    probed = commits.select(wanted).filter(mask)
    plain = pa.table({name: pc.cast(probed[name], COMMITS.arrow.field(name).type) for name in wanted})
    row_itself = pc.ScalarAggregateOptions(skip_nulls=False)
    lowest = (
        plain.sort_by("partition")
        .group_by(["group", "topic", "metadata"], use_threads=False)
        .aggregate([("partition", "first", row_itself), ("owner", "first", row_itself)])
    )
    columns = [lowest[name].to_pylist() for name in ("group", "topic", "metadata", "partition_first", "owner_first")]
    return {
        (group, topic, text): (partition, owner) for group, topic, text, partition, owner in zip(*columns, strict=True)
    }


def _rows(new: list[tuple[_Key, int, str | None, ServiceTimes]], snapshot: Snapshot) -> pa.Table:
    members = {(row["group"], row["member_id"]): row for row in snapshot.rows(MEMBERS).select(_MEMBER).to_pylist()}
    sampled_at: datetime = snapshot.rows(COMMITS)["sampled_at"][0].as_py()
    unknown: dict[str, Any] = {}
    owners = [members.get((key[0], owner or ""), unknown) for key, _, owner, _ in new]
    columns: dict[str, list[Any]] = {
        # A consumer's clock that is ahead must not date its measurement after it was read.
        "measured_at": [min(one.ended_at or sampled_at, sampled_at) for *_, one in new],
        "group": [key[0] for key, *_ in new],
        "topic": [key[1] for key, *_ in new],
        "partition": [partition for _, partition, _, _ in new],
        "member_id": [owner for _, _, owner, _ in new],
        "client_id": [owner.get("client_id") for owner in owners],
        "host": [owner.get("host") for owner in owners],
        "source": [MeasuredBy.PROBE.value] * len(new),
        **columns_of([one for *_, one in new], *_MEASURED),
    }
    return rows_from_columns(
        SERVICE_TIMES, columns, sample_id=snapshot.sample_id, cluster=snapshot.cluster, at=sampled_at
    )


_MEMBER = ["group", "member_id", "client_id", "host"]
#: Columns that bear the name of the field they come from.
_MEASURED = (
    "t1_seconds",
    "t2_seconds",
    "run_queue_seconds",
    "lock_wait_seconds",
    "t1_doubt",
    "process_cpu_seconds",
    "messages",
    "threads",
    "window_seconds",
    "cores",
)
