"""A small lake as the collectors and the analysis would have written it: every status, an hour or more of history.

Everything is a formula of the moment ``now`` and the group's name, so that the same call makes the same lake.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lagwise.domain.assignment.rows import assignment_rows
from lagwise.domain.vocabulary import GroupState, Status, UnknownReason
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.partition_history import MIN_PARTITIONS
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, Story
from tests.lake_rows import append, overwrite

INTERVAL = timedelta(seconds=15)
Row = dict[str, Any]
#: What trends are made of: nothing here, so that none is told.
_SUMS = [c.name for c in MINUTES.columns if c.name.startswith("sum_") or c.name == "steps"]


#: Partitions without a leader, as a sample reports them.
LEADERLESS: Row = {
    "topic": None,
    "state": "no_leader",
    "partitions": 2,
    "named": "orders-3, orders-4",
    "missing": "2",
}


@dataclass(frozen=True)
class Scene:
    """What to write: stories of groups as of ``now``, with ``hours`` of history behind them."""

    now: datetime
    stories: tuple[Story, ...] = GROUPS_OF_THE_DEMO
    hours: float = 1.5
    #: Age of the newest sample and of the newest tick at ``now``.
    sample_age: timedelta = timedelta(seconds=6)
    tick_age: timedelta = timedelta(seconds=4)
    #: Age of the newest sample that was judged; None is that of the newest.
    judged_age: timedelta | None = None
    #: The interval that the collectors claim to keep: above the real one, a lake stays fresh for longer.
    promised: timedelta = INTERVAL
    errors: dict[str, list[Row]] = field(default_factory=dict)
    #: What each sample of a cluster reports of the cluster itself.
    facts: dict[str, Row] = field(default_factory=dict)

    @property
    def as_of(self) -> datetime:
        return self.now - (self.sample_age if self.judged_age is None else self.judged_age)

    @property
    def times(self) -> list[datetime]:
        steps = int(self.hours * 3600 / INTERVAL.total_seconds())
        return [self.now - self.sample_age - INTERVAL * i for i in range(steps, -1, -1)]


def write(lake: Lake, scene: Scene) -> None:
    """Create every table and fill it with the scene."""
    lake.create(*ALL_TABLES)
    overwrite(lake, GROUP_STATUS, [_group_status(scene, s) for s in scene.stories])
    overwrite(lake, PARTITION_STATUS, _partition_status(scene))
    append(lake, GROUP_HISTORY, _history(scene))
    append(lake, STATUS_CHANGES, _changes(scene))
    append(lake, TICKS, _ticks(scene))
    append(lake, SAMPLES, _samples(scene))
    append(lake, GROUPS, _groups(scene))
    append(lake, MEMBERS, _members(scene))
    append(lake, EVENTS, _events(scene))
    append(lake, REBALANCE_STATS, _rebalance_stats(scene))
    overwrite(lake, ASSIGNMENTS, _assignments(scene))
    append(lake, TOPICS, _topics(scene))
    append(lake, WATERMARKS, _watermarks(scene))
    append(lake, WATERMARK_MINUTES, _watermark_minutes(scene))
    append(lake, MINUTES, _minutes(scene))


def write_to(folder: Path, scene: Scene) -> Lake:
    """The scene as the lake of a data folder."""
    lake = Lake(str(folder / "lake"))
    write(lake, scene)
    return lake


def _group_status(scene: Scene, s: Story) -> Row:
    now = s.at(0.0)
    return {
        "cluster": s.cluster,
        "group": s.group,
        "as_of": scene.as_of,
        "status": s.status,
        "reason": s.reason,
        "since": scene.as_of - timedelta(seconds=s.since_seconds),
        "sentence": s.sentence,
        "state": s.state,
        "type": s.type,
        "members": None if s.reason == UnknownReason.UNREADABLE else s.members,
        "idle_members": max(0, s.members - s.partitions),
        "topics": [s.topic],
        "partitions": s.partitions,
        "partitions_by_status": [
            {"status": status, "partitions": n} for status, n in _count(s.status_of(p) for p in range(s.partitions))
        ],
        **now,
        "seconds_to_catch_up": s.seconds_to_catch_up,
        "seconds_to_catch_up_low": _times(s.seconds_to_catch_up, 0.8),
        "seconds_to_catch_up_high": _times(s.seconds_to_catch_up, 1.3),
        "seconds_to_loss": s.seconds_to_loss,
        "loss_cause": s.loss_cause if s.seconds_to_loss is not None else None,
        **dict.fromkeys(("records_lost", "lost_at_least", "lost_at_most"), s.records_lost),
        "worst_topic": s.topic if s.partitions else None,
        "worst_partition": s.worst_partition if s.partitions else None,
        "findings": [{"kind": kind, "sentence": text, "remedy": remedy} for kind, text, remedy in s.findings],
    }


def _count(statuses: Iterable[Status]) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for status in statuses:
        found[str(status)] = found.get(str(status), 0) + 1
    return sorted(found.items())


def _partition_status(scene: Scene) -> Iterator[Row]:
    for s in scene.stories:
        now = s.at(0.0)
        for p in range(s.partitions):
            status = s.status_of(p)
            hit = status not in (Status.OK, Status.GHOST, Status.UNKNOWN)
            share = s.share_of(p)
            lag = None if now["lag"] is None else int(now["lag"] * s.lag_share_of(p))
            end = _end(s, p, 0.0)
            owner = s.owner_of(p)
            yield {
                "cluster": s.cluster,
                "group": s.group,
                "topic": s.topic,
                "partition": p,
                "as_of": scene.as_of,
                "status": status,
                "reason": s.reason if status == Status.UNKNOWN else None,
                "since": scene.as_of - timedelta(seconds=s.since_seconds + 15 * p),
                "reasons": [status] if not hit else [status, *s.also],
                "log_start": end - (lag or 0) if s.records_lost else end - max(800_000, lag or 0),
                "committed": None if lag is None else end - lag - (s.records_lost // s.partitions),
                "high_watermark": end,
                "last_stable": end,
                "lag": lag,
                "lag_seconds": None if now["lag_seconds"] is None else now["lag_seconds"] * (1.0 if hit else 0.002),
                "lag_seconds_is_lower_bound": now["lag_seconds_is_lower_bound"] if hit else False,
                "produce_rate_per_second": _times(now["produce_rate_per_second"], share),
                "consume_rate_per_second": _times(now["consume_rate_per_second"], share),
                "lag_slope_per_second": 0.0,
                "seconds_to_catch_up": s.seconds_to_catch_up if hit else None,
                "seconds_to_loss": s.seconds_to_loss if hit else None,
                "seconds_to_loss_at_latest": s.seconds_to_loss_at_latest if hit else None,
                "loss_cause": s.loss_cause if hit and s.seconds_to_loss is not None else None,
                **dict.fromkeys(
                    ("records_lost", "lost_at_least", "lost_at_most"),
                    s.records_lost // max(1, s.partitions) if hit else 0,
                ),
                "committed_since": scene.as_of - timedelta(seconds=s.since_seconds if s.frozen and hit else 4),
                "commit_cadence_seconds": 5.0,
                "owner": owner and f"{owner[0]}-6f1c0b1e",
                "client_id": owner and owner[0],
                "host": owner and owner[1],
                "leader": 1 + p % 3,
                "samples": 240,
            }


def _times(value: float | None, share: float) -> float | None:
    return None if value is None else value * share


def _history(scene: Scene) -> Iterator[Row]:
    for s in scene.stories:
        for at in scene.times:
            ago = (scene.as_of - at).total_seconds()
            yield {"cluster": s.cluster, "group": s.group, "as_of": at, "status": s.status_at(ago), **s.at(ago)}


def _changes(scene: Scene) -> Iterator[Row]:
    for s in scene.stories:
        if s.since_seconds < scene.hours * 3600:
            yield {
                "cluster": s.cluster,
                "group": s.group,
                "at": scene.as_of - timedelta(seconds=s.since_seconds),
                "before": s.before,
                "after": s.status,
                "reason": s.reason,
            }


def _ticks(scene: Scene) -> Iterator[Row]:
    end = scene.now - scene.tick_age
    for i in range(int(scene.hours * 240), -1, -1):
        seconds = 2.6 + 0.7 * math.sin(i / 9) + (1.9 if i % 40 == 0 else 0.0)
        finished = end - INTERVAL * i
        yield {
            "started_at": finished - timedelta(seconds=seconds),
            "finished_at": finished,
            "wall_seconds": seconds,
            "samples": 2,
            "group_partitions": sum(s.partitions for s in scene.stories),
            "progress": [],
        }


def _clusters(scene: Scene) -> list[str]:
    return sorted({s.cluster for s in scene.stories})


def _samples(scene: Scene) -> Iterator[Row]:
    for cluster in _clusters(scene):
        own = [s for s in scene.stories if s.cluster == cluster]
        for i, at in enumerate(scene.times):
            seconds = 0.04 + 0.012 * len(own) + 0.02 * math.sin(i / 7 + len(own)) + (0.3 if i % 53 == len(own) else 0.0)
            yield {
                "sample_id": f"{cluster}-{i}",
                "cluster": cluster,
                "system": "kafka",
                "started_at": at - timedelta(seconds=seconds),
                "commits_read_at": at - timedelta(seconds=seconds * 0.6),
                "watermarks_read_at": at - timedelta(seconds=seconds * 0.2),
                "finished_at": at,
                "written_at": at + timedelta(seconds=0.1),
                "interval_seconds": scene.promised.total_seconds(),
                "groups": len(own),
                "group_partitions": sum(s.partitions for s in own),
                "partitions": sum(s.partitions for s in own),
                "wall_seconds": seconds,
                "cpu_seconds": seconds * 0.4,
                "offsets_retention_seconds": 604800.0,
                "errors": scene.errors.get(cluster, []) if i % 4 == 0 else [],
                **scene.facts.get(cluster, {}),
            }


def _newest_samples(scene: Scene) -> list[tuple[int, datetime]]:
    return list(enumerate(scene.times))[-4:]


def _groups(scene: Scene) -> Iterator[Row]:
    for i, at in _newest_samples(scene):
        for s in scene.stories:
            yield _group(s, i, at)
    for s, i, at in _shaken(scene):
        yield _group(s, i, at)


def _group(s: Story, sample: int, at: datetime) -> Row:
    return {
        "sample_id": f"{s.cluster}-{sample}",
        "cluster": s.cluster,
        "sampled_at": at,
        "group": s.group,
        "state": s.state,
        "type": s.type,
        "assignor": "uniform" if s.type == "consumer" else "range" if s.members else None,
        "coordinator": 2,
        "member_count": s.members,
    }


def _shaken(scene: Scene) -> Iterator[tuple[Story, int, datetime]]:
    """Groups that were rebalanced, with earlier samples, one a minute."""
    earlier = list(enumerate(scene.times))[:-4]
    for s in scene.stories:
        if s.rebalances_seconds_ago:
            yield from ((s, i, at) for i, at in earlier[:: -int(60 / INTERVAL.total_seconds())])


def _members(scene: Scene) -> Iterator[Row]:
    for i, at in _newest_samples(scene):
        for s in scene.stories:
            if s.state not in (GroupState.EMPTY, GroupState.DEAD):
                yield from _members_of(s, range(s.members), i, at, s.starts(0.0))
    for s, i, at in _shaken(scene):
        ago = (scene.as_of - at).total_seconds()
        # Whoever was thrown out is back two minutes later, as another member of the same name.
        is_out = any(r - 120 < ago <= r for r in s.rebalances_seconds_ago)
        yield from _members_of(s, range(int(is_out), s.members), i, at, s.starts(ago))


def _members_of(s: Story, present: range, sample: int, at: datetime, starts: int) -> Iterator[Row]:
    for place, m in enumerate(present):
        owned = [p for p in range(s.partitions) if p % len(present) == place]
        client, host = s.member(m)
        yield {
            "sample_id": f"{s.cluster}-{sample}",
            "cluster": s.cluster,
            "sampled_at": at,
            "group": s.group,
            "member_id": f"{client}-6f1c0b1e" + (f"-{starts}" if m == 0 and starts else ""),
            "client_id": client,
            "host": host,
            "assignment": [{"topic": s.topic, "partitions": owned}] if owned else [],
            "assigned_partitions": len(owned),
        }


def _events(scene: Scene) -> Iterator[Row]:
    for s in scene.stories:
        for n, ago in enumerate(s.rebalances_seconds_ago):
            yield {
                "cluster": s.cluster,
                "at": scene.as_of - timedelta(seconds=ago),
                "kind": "rebalance",
                "group": s.group,
                "generation": 41 + n,
                "cause": "a member left",
                "joined": [],
                "left": [f"{s.member(0)[0]} ({s.member(0)[1]})"],
                "partitions_moved": 4,
                "duration_seconds": 3.2,
            }


def _rebalance_stats(scene: Scene) -> Iterator[Row]:
    for s in scene.stories:
        if s.rebalances_seconds_ago:
            last = scene.as_of - timedelta(seconds=min(s.rebalances_seconds_ago))
            yield {
                "cluster": s.cluster,
                "group": s.group,
                "hour": last.replace(minute=0, second=0, microsecond=0),
                "rebalances": len(s.rebalances_seconds_ago),
                "exact": False,
                "downtime_seconds": None,
                "downtime_seconds_at_most": 3.2 * len(s.rebalances_seconds_ago),
                "partitions_moved": 4 * len(s.rebalances_seconds_ago),
                "joined": 0,
                "left": len(s.rebalances_seconds_ago),
                "churning": [],
                "is_storm": len(s.rebalances_seconds_ago) > 4,
                "cause": "failing_members",
                "sentence": f"Members crashed or hung: once, a member sent no heartbeat within its "
                f"session.timeout.ms of 10 s ({s.member(0)[0]}).",
                "remedy": "heartbeat.interval.ms should be 3.3 s at most, a third of it.",
                "reread_records_at_most": 1_250,
                "last_at": last,
                "events": len(s.rebalances_seconds_ago),
            }


def _assignments(scene: Scene) -> Iterator[Row]:
    members = [row for row in _members(scene) if row["sampled_at"] == scene.times[-1]]
    for s in scene.stories:
        its = [row for row in members if (row["cluster"], row["group"]) == (s.cluster, s.group)]
        group = {"group": s.group, "state": s.state, "assignor": "range"}
        rates = {(s.topic, p): s.rate / (p + 1) for p in range(s.partitions)}
        yield from assignment_rows(s.cluster, scene.as_of, [group], its, {s.topic: s.partitions}, rates)


def _topics(scene: Scene) -> Iterator[Row]:
    for s in scene.stories:
        yield {
            "sample_id": f"{s.cluster}-0",
            "cluster": s.cluster,
            "sampled_at": scene.times[0],
            "topic": s.topic,
            "partitions": s.partitions,
            "replication_factor": 3,
            "min_isr": 2,
            "retention_bytes": -1,
            "retention_ms": s.retention_ms,
            "cleanup_policy": "delete",
        }


def _logs(scene: Scene) -> dict[tuple[str, str], Story]:
    """One story for each topic: the one with most partitions."""
    found: dict[tuple[str, str], Story] = {}
    for s in sorted(scene.stories, key=lambda s: s.partitions):
        found[s.cluster, s.topic] = s
    return found


def _end(s: Story, partition: int, ago: float) -> int:
    return 5_000_000 + 37_000 * partition - int(ago * s.rate * s.share_of(partition))


def _watermarks(scene: Scene) -> Iterator[Row]:
    """The newest five minutes. The second topic partition has a replica that is not in sync, the third no leader."""
    for (cluster, topic), s in _logs(scene).items():
        for i, at in list(enumerate(scene.times))[-20:]:
            for p in range(s.partitions):
                end = _end(s, p, (scene.as_of - at).total_seconds())
                replicas = [1 + (p + n) % 3 for n in range(3)]
                yield {
                    "sample_id": f"{cluster}-{i}",
                    "cluster": cluster,
                    "sampled_at": at,
                    "topic": topic,
                    "partition": p,
                    "topic_id": topic,
                    "log_start": end - 800_000,
                    "high_watermark": end,
                    "last_stable": end,
                    "leader": None if p == s.without_leader else replicas[0],
                    "replicas": replicas,
                    "isr": replicas[:2] if p == s.out_of_sync else replicas,
                }


def _watermark_minutes(scene: Scene) -> Iterator[Row]:
    for (cluster, topic), s in _logs(scene).items():
        for minute in _whole_minutes(scene):
            last_at = minute + timedelta(seconds=45)
            for p in range(s.partitions):
                end = _end(s, p, (scene.as_of - last_at).total_seconds())
                yield {
                    "cluster": cluster,
                    "topic": topic,
                    "partition": p,
                    "minute": minute,
                    "first_at": minute,
                    "last_at": last_at,
                    "first_high_watermark": end - 1,
                    "last_high_watermark": end,
                }


def _minutes(scene: Scene) -> Iterator[Row]:
    """The lag of each partition of the groups that have several."""
    for s in scene.stories:
        if s.partitions < MIN_PARTITIONS:
            continue
        for minute in _whole_minutes(scene):
            lag = s.at((scene.as_of - minute).total_seconds())["lag"]
            last_at = minute + timedelta(seconds=45)
            for p in range(s.partitions):
                its = None if lag is None else int(lag * s.lag_share_of(p))
                end = _end(s, p, (scene.as_of - last_at).total_seconds())
                yield {
                    "cluster": s.cluster,
                    "group": s.group,
                    "topic": s.topic,
                    "partition": p,
                    "minute": minute,
                    "samples": 1,
                    "first_at": minute,
                    **dict.fromkeys(_SUMS, 0),
                    "last_at": last_at,
                    "last_committed": None if its is None else end - its,
                    "last_lag": its,
                    "max_lag": its,
                }


def _whole_minutes(scene: Scene) -> list[datetime]:
    newest = scene.as_of.replace(second=0, microsecond=0) - timedelta(minutes=1)
    return [newest - timedelta(minutes=i) for i in range(int(60 * min(scene.hours, 1.5)))]
