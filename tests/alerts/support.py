"""Builders for the tests of the alerts: moments, conditions, rows of the lake, and the playing of histories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from sqlalchemy import Engine, text

from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.analysis import GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_alerts.model import (
    Alert,
    AlertKind,
    AlertState,
    AlertSubject,
    ClusterCondition,
    ClusterView,
    Condition,
    FreshnessCondition,
    GroupCondition,
    Notification,
    Situation,
)
from lagwise_alerts.outbox.database import transaction
from lagwise_alerts.rules.rule_file import RuleBook, load_rules
from lagwise_alerts.stages import decide

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
CLUSTER = "kafka"


def at(seconds: float) -> datetime:
    """A moment of the tests' history."""
    return START + timedelta(seconds=seconds)


def group_condition(
    seconds: float,
    status: str,
    *,
    group: str = "orders",
    since: float | None = None,
    reason: str | None = None,
    seen_active: bool | None = True,
    numbers: GroupNumbers | None = None,
    cluster: str = CLUSTER,
    kind: AlertKind = AlertKind.GROUP,
    is_found: bool = False,
    topics: tuple[str, ...] = (),
) -> GroupCondition:
    return GroupCondition(
        subject=AlertSubject(kind, cluster, group),
        as_of=at(seconds),
        valid_for_seconds=120.0,
        status=Status(status),
        reason=UnknownReason(reason) if reason else None,
        since=at(seconds if since is None else since),
        sentence=f"{group} is {status}",
        seen_active=seen_active,
        numbers=numbers or GroupNumbers(lag_records=10, lag_seconds=5.0),
        is_found=is_found,
        topics=topics,
    )


def freshness(
    seconds: float,
    newest: float | None,
    *,
    kind: AlertKind = AlertKind.COLLECTION,
    floor: float = 45.0,
    watching_since: float | None = None,
) -> FreshnessCondition:
    return FreshnessCondition(
        subject=AlertSubject(kind, CLUSTER if kind is AlertKind.COLLECTION else None),
        as_of=at(seconds),
        newest_at=None if newest is None else at(newest),
        floor_seconds=floor,
        watching_since=None if watching_since is None else at(watching_since),
        sentence="late",
    )


def cluster_condition(
    seconds: float, kind: AlertKind, *, is_found: bool | None = True, cluster: str = CLUSTER
) -> ClusterCondition:
    said = "2 partitions have no leader (orders-3, orders-4). Start broker 2." if is_found else ""
    return ClusterCondition(AlertSubject(kind, cluster), at(seconds), 120.0, said, is_found)


def observation(
    *conditions: Condition,
    judged_until: float | None = None,
    without_errors: bool = True,
    clusters: Sequence[str] = (CLUSTER,),
) -> Situation:
    view = ClusterView(None if judged_until is None else at(judged_until), 120.0, without_errors)
    return Situation(conditions, dict.fromkeys(clusters, view))


@cache
def book(channels: tuple[str, ...] = ("ops",)) -> RuleBook:
    """The rules that come with Lagwise."""
    return load_rules(None, channels)


@dataclass
class Player:
    """Keeps alerts from decision to decision, as the database does, and remembers what was told."""

    rules: RuleBook
    alerts: dict[str, Alert] = field(default_factory=dict)
    notified: list[Notification] = field(default_factory=list)
    ended: list[Alert] = field(default_factory=list)

    def see(self, now: float, seen: Situation) -> list[Notification]:
        decision = decide(self.rules, seen, self.alerts, at(now), self.ended_lately)
        self.alerts, ended = carried_out(self.alerts, decision.changed, decision.cancelled)
        self.ended += ended
        self.notified += decision.notifications
        return list(decision.notifications)

    @property
    def ended_lately(self) -> dict[str, Alert]:
        """The latest alert of each subject that ended; how long ago that counts is for the decisions to say."""
        return {alert.fingerprint: alert for alert in self.ended}


def carried_out(
    alerts: Mapping[str, Alert], changed: Iterable[Alert], cancelled: Iterable[str]
) -> tuple[dict[str, Alert], list[Alert]]:
    """The open alerts after a decision, and those that ended."""
    gone = set(cancelled)
    after = {key: alert for key, alert in alerts.items() if alert.incident_id not in gone}
    ended = []
    for alert in changed:
        if alert.state is AlertState.RESOLVED:
            after.pop(alert.fingerprint, None)
            ended.append(alert)
        else:
            after[alert.fingerprint] = alert
    return after, ended


@dataclass
class LakeWriter:
    """Writes into a real lake what collectors and the analysis would."""

    lake: Lake
    cluster: str = CLUSTER

    def groups(self, moment: datetime, statuses: Mapping[str, str | Mapping[str, Any]]) -> None:
        """Replace group_status; a value is a status or a row's columns."""
        rows = []
        for name, given in statuses.items():
            columns: dict[str, Any] = {"status": given} if isinstance(given, str) else dict(given)
            rows.append(
                {
                    "cluster": self.cluster,
                    "group": name,
                    "as_of": moment,
                    "since": moment,
                    "sentence": f"{name} is {columns['status']}",
                    "topics": [],
                    "partitions": 1,
                    "partitions_by_status": [],
                    "records_lost": 0,
                    "lag": 10,
                    "lag_seconds": 5.0,
                    "members": 0,
                    "findings": [],
                    **columns,
                }
            )
        write_deltalake(
            self.lake.location(GROUP_STATUS),
            pa.Table.from_pylist(rows, schema=GROUP_STATUS.arrow),
            mode="overwrite",
        )

    def sample(
        self,
        moment: datetime,
        *,
        groups: int = 1,
        errors: Sequence[Mapping[str, Any]] = (),
        interval: float = 15.0,
        **columns: Any,
    ) -> None:
        row = {
            "sample_id": moment.isoformat(),
            "cluster": self.cluster,
            "system": "kafka",
            "started_at": moment,
            "commits_read_at": moment,
            "watermarks_read_at": moment,
            "finished_at": moment,
            "written_at": moment,
            "interval_seconds": interval,
            "groups": groups,
            "group_partitions": groups,
            "partitions": groups,
            "wall_seconds": 0.1,
            "cpu_seconds": 0.1,
            "errors": list(errors),
            **columns,
        }
        self.lake.append(SAMPLES, SAMPLES.from_rows([row]))

    def tick(self, moment: datetime, read_until: datetime | None = None) -> None:
        progress = {"cluster": self.cluster, "read_until": read_until or moment, "finished_until": None}
        row = {
            "started_at": moment,
            "finished_at": moment,
            "wall_seconds": 1.0,
            "samples": 1,
            "group_partitions": 1,
            "progress": [progress],
        }
        self.lake.append(TICKS, TICKS.from_rows([row]))

    def change(self, moment: datetime, group: str, before: str | None, after: str, topic: str | None = None) -> None:
        row = {"cluster": self.cluster, "group": group, "topic": topic, "at": moment, "before": before, "after": after}
        self.lake.append(STATUS_CHANGES, STATUS_CHANGES.from_rows([row]))

    def storm(self, moment: datetime, group: str, *, is_storm: bool = True) -> None:
        """An hour of rebalances, the last of them at that moment."""
        row = {
            "cluster": self.cluster,
            "group": group,
            "hour": moment.replace(minute=0, second=0, microsecond=0),
            "rebalances": 7,
            "exact": True,
            "joined": 7,
            "left": 7,
            "churning": [],
            "is_storm": is_storm,
            "cause": "storm" if is_storm else "deployment",
            "sentence": f"{group} was rebalanced 7 times",
            "last_at": moment,
            "events": 7,
        }
        self.lake.append(REBALANCE_STATS, REBALANCE_STATS.from_rows([row]))

    def capacity(self, moment: datetime, group: str, verdicts: Mapping[str, str]) -> None:
        """Replace the verdicts on capacity by those of one group, by topic."""
        rows = [
            {
                "cluster": self.cluster,
                "group": group,
                "topic": topic,
                "as_of": moment,
                "verdict": verdict,
                "size_by": "peak",
                "sentence": f"It can do what it can on {topic}.",
                "partitions": 1,
                "members": 1,
                "nodes": 1,
                "unit": "member",
                "capacity_source": "none",
                "confidence": "none",
                "inputs": [],
            }
            for topic, verdict in verdicts.items()
        ]
        write_deltalake(
            self.lake.location(CAPACITY), pa.Table.from_pylist(rows, schema=CAPACITY.arrow), mode="overwrite"
        )

    def all_well(self, moment: datetime, statuses: Mapping[str, str | Mapping[str, Any]]) -> None:
        """A sample, a tick that read it, and the statuses that came of it."""
        self.sample(moment)
        self.groups(moment, statuses)
        self.tick(moment)


def write_rows(lake: Lake, table: Table, rows: Iterable[Mapping[str, Any]], second: float) -> None:
    """Rows of one moment; columns that must have a value and are not given get an empty one."""
    empty = {"string": "", "timestamp": at(second), "list": [], "int": 0, "double": 0.0, "bool": False}
    needed = {
        column.name: next(value for word, value in empty.items() if word in str(column.type))
        for column in table.columns
        if not column.nullable
    }
    given = [{**needed, "cluster": CLUSTER, "day": f"{at(second):%Y-%m-%d}", **row} for row in rows]
    names = {column.name for column in table.columns}
    lake.append(table, table.from_rows([{k: v for k, v in row.items() if k in names} for row in given]))


@contextmanager
def refusing(engine: Engine, event: str, table: str) -> Iterator[None]:
    """Inside, the database refuses an ``insert`` or ``update`` of a table, as a full disk would."""
    if engine.dialect.name == "sqlite":
        make = [f"create trigger refuse before {event} on {table} begin select raise(abort, 'disk is full'); end"]
        drop = "drop trigger refuse"
    else:
        body = "$$ begin raise exception 'disk is full'; end $$ language plpgsql"
        make = [
            f"create function refused() returns trigger as {body}",
            f"create trigger refuse before {event} on {table} for each row execute function refused()",
        ]
        drop = "drop function refused cascade"
    with transaction(engine) as connection:
        for statement in make:
            connection.execute(text(statement))
    try:
        yield
    finally:
        with transaction(engine) as connection:
            connection.execute(text(drop))


def write_yaml(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
