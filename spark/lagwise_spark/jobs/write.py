"""What a round writes. Each write is one commit."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.findings import Finding, in_order, loss_findings
from lagwise.domain.group_record import row_of
from lagwise.domain.groups import GroupVerdict, record_of_verdict
from lagwise.domain.what_changed.backlog import Backlog
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.engine_errors import as_lake_errors
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News
from lagwise_spark.jobs.standings import Standings, change_of

Row = Mapping[str, Any]


Spans = Mapping[str, tuple[datetime, datetime]]


def replace_spans(lake: Lake, table: Table, spans: Spans, rows: pa.Table) -> None:
    """Replace the minutes, or hours, of each cluster in its span, [start, end); doing it again changes nothing.

    Raises LakeError.
    """
    if _has_any(lake, table, spans):
        lake.replace(table, rows, _predicate(table, spans))
    elif rows.num_rows:
        lake.append(table, rows)


def delete_spans(lake: Lake, table: Table, spans: Spans) -> None:
    """Delete the minutes, or hours, of each cluster in its span, [start, end). Raises LakeError."""
    delta = lake.open(table)
    if delta is None or not _has_any(lake, table, spans):
        return
    lake.before_writing()
    with as_lake_errors(f"cannot write to the table {lake.location(table)}"):
        delta.delete(_predicate(table, spans))


def _has_any(lake: Lake, table: Table, spans: Spans) -> bool:
    """Whether there are rows of these clusters in their spans. Usually the statistics of files tell that there are
    none; where clusters are sampled at different times, files of the others cover the same time."""
    start, end = min(start for start, _ in spans.values()), max(end for _, end in spans.values())
    if start >= end or not lake.files(table, since=start, until=end):
        return False
    since, until = zip(*spans.values(), strict=True)
    its = pa.table({"cluster": list(spans), "since": pa.array(since, TIMESTAMP), "until": pa.array(until, TIMESTAMP)})
    found = lake.query(
        f"select 1 from {table.name} join spans using (cluster) "  # noqa: S608 (names of our own)
        f"where {table.clock} >= since and {table.clock} < until limit 1",
        over=[table],
        since=start,
        given={"spans": its},
    )
    return bool(found.num_rows)


def _predicate(table: Table, spans: Spans) -> str:
    start, end = min(start for start, _ in spans.values()), max(end for _, end in spans.values())
    of_clusters = " OR ".join(
        f"(cluster = {quoted(cluster)} AND {table.clock} >= {_literal(since)} AND {table.clock} < {_literal(until)})"
        for cluster, (since, until) in spans.items()
    )
    return f"day >= DATE '{_utc(start):%Y-%m-%d}' AND day <= DATE '{_utc(end):%Y-%m-%d}' AND ({of_clusters})"


def quoted(name: str) -> str:
    """A name as a literal of a condition."""
    return "'" + name.replace("'", "''") + "'"


def _literal(at: datetime) -> str:
    """A time as delta-rs compares it with a column: its TIMESTAMP literals are of another precision, and refused."""
    return f"""arrow_cast('{_utc(at):%Y-%m-%dT%H:%M:%SZ}', 'Timestamp(Microsecond, Some("UTC"))')"""


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def partition_changes(rows: pa.Table, lake: Lake) -> int:
    """Append the partitions' changes of status; what is seen for the first time is not a change. Written before the
    statuses themselves: a round that is cut short between the two records a change twice, never not at all."""
    changed = rows.filter(pc.fill_null(pc.not_equal(rows["previous_status"], rows["status"]), False))
    made = {"at": changed["as_of"], "before": changed["previous_status"], "after": changed["status"]}
    kept = ("cluster", "group", "topic", "partition", "reason")
    lake.append(STATUS_CHANGES, pa.table({**{name: changed[name] for name in kept}, **made}))
    return int(changed.num_rows)


def groups(
    lake: Lake,
    verdicts: Mapping[tuple[str, str], tuple[Row, GroupVerdict]],
    findings: Mapping[tuple[str, str], Sequence[Finding]],
    backlogs: Mapping[tuple[str, str], Backlog],
    news: Sequence[News],
    before: Standings,
) -> int:
    """Write the groups' present state, its history and its changes, where ``before`` is how they stood until now; the
    number of changes is returned."""
    of = {n.cluster: n for n in news}
    rows, changes = [], []
    for (cluster, group), (fact, verdict) in verdicts.items():
        previous = before.get((cluster, group))
        unchanged = previous is not None and previous.status == str(verdict.status)
        now = of[cluster].as_of
        since = previous.since if previous is not None and unchanged else now
        lost = loss_findings(
            verdict.lost, now, records_lost=verdict.numbers.records_lost or 0, system=of[cluster].system
        )
        found = in_order([*lost, *findings.get((cluster, group), ())])
        record = record_of_verdict(
            verdict,
            cluster=cluster,
            group=group,
            as_of=now,
            since=since,
            state=fact.get("state"),
            group_type=fact.get("type"),
            idle_members=fact.get("idle_members"),
            findings=found,
            backlog=backlogs.get((cluster, group)),
        )
        rows.append(row_of(record))
        if not unchanged:
            reason = str(verdict.reason) if verdict.reason else None
            changes.append(change_of((cluster, group), now, previous, str(verdict.status), reason))
    lake.append(STATUS_CHANGES, STATUS_CHANGES.from_rows(changes))
    lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(rows))
    lake.replace(GROUP_STATUS, GROUP_STATUS.from_rows(rows))
    return len(changes)


def replace_days_since(lake: Lake, table: Table, rows: pa.Table, first: date) -> None:
    """Replace what a small table holds from the first day on."""
    lake.replace(table, rows, f"day >= DATE '{first.isoformat()}'")
