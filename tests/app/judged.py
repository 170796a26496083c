"""Rows of a lake in which some groups have been judged, as the analysis would have written them."""

from datetime import datetime, timedelta
from typing import Any

from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from tests import lake_rows
from tests.lake_rows import AT, row

#: Everything that a group or topic name could do to a terminal, to rich's markup, or to a line.
HOSTILE = "evil\n\x1b[2J[bold red]x[/bold red]\u202e'; drop table groups; --<script>"


def append(lake: Lake, table: Table, *rows: dict[str, Any]) -> None:
    lake_rows.append(lake, table, rows)


def group(name: str, status: str, *, cluster: str = "shop", **values: Any) -> dict[str, Any]:
    counts = [{"status": status, "partitions": 2}]
    return row(
        GROUP_STATUS,
        cluster=cluster,
        group=name,
        status=status,
        as_of=values.pop("as_of", AT),
        partitions=2,
        partitions_by_status=counts,
        sentence=values.pop("sentence", f"Because it is {status}."),
        **values,
    )


def partition(name: str, number: int, *, cluster: str = "shop", **values: Any) -> dict[str, Any]:
    values = {"topic": "orders", "status": "ok", "as_of": AT, "reasons": ["ok"], **values}
    return row(PARTITION_STATUS, cluster=cluster, group=name, partition=number, **values)


def sampled(
    lake: Lake,
    at: datetime,
    *,
    cluster: str = "shop",
    errors: dict[str, int] | None = None,
    interval_seconds: float = 10,
    groups: int = 1,
) -> None:
    found = [{"kind": kind, "count": count, "example": ""} for kind, count in (errors or {}).items()]
    append(
        lake,
        SAMPLES,
        row(
            SAMPLES,
            cluster=cluster,
            started_at=at,
            finished_at=at + timedelta(seconds=1),
            interval_seconds=interval_seconds,
            groups=groups,
            errors=found,
        ),
    )


def analyzed(lake: Lake, at: datetime) -> None:
    append(lake, TICKS, row(TICKS, started_at=at, finished_at=at + timedelta(seconds=1)))


def changed(lake: Lake, name: str, at: datetime, before: str | None, after: str, topic: str | None = None) -> None:
    append(
        lake,
        STATUS_CHANGES,
        row(STATUS_CHANGES, cluster="shop", group=name, topic=topic, at=at, before=before, after=after),
    )
