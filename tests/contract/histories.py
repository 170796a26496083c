"""Random histories, as nasty as the raw tables allow: gaps, nulls, rewinds, re-created and truncated topics, jumps of
the log start, groups that come, go and rebalance, commits beyond the end. From one seed each."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.traces.trace import Row, Trace, moment, sample_id

STATES = ("Stable", "Stable", "Stable", "Empty", "Dead", "PreparingRebalance", "Reconciling", "Unknown", None)
TYPES = ("classic", "classic", "consumer", "simple", None)
INTERVALS = (5.0, 15.0, 15.0, 15.0, 30.0, 60.0, 120.0, 600.0)


@dataclass
class _Log:
    """One topic-partition."""

    topic: str
    partition: int
    high: int
    start: int
    id: str | None
    rate: float
    keeps_stable: bool
    readable: bool = True


@dataclass
class _Reader:
    """One group on one topic-partition."""

    log: _Log
    committed: int | None
    speed: float
    commits: bool = True


class _Chance:
    """Seeded randomness with the few shapes that are needed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def hit(self, probability: float) -> bool:
        return self.random.random() < probability

    def one_of(self, choices: tuple[Any, ...]) -> Any:
        return choices[int(self.random.random() * len(choices))]

    def upto(self, most: float) -> int:
        return int(self.random.random() * (most + 1))


def history(seed: int) -> Trace:
    """A trace without truth, judged at a few moments."""
    chance = _Chance(seed)
    interval = chance.one_of(INTERVALS)
    times = _times(chance, interval)
    logs = _logs(chance)
    groups = [f"group-{n}" for n in range(1 + chance.upto(1))]
    readers = {
        group: [
            _Reader(
                log,
                max(0, log.high - chance.upto(200)) if chance.hit(0.9) else None,
                log.rate * 4 * chance.random.random(),
            )
            for log in logs
            if chance.hit(0.8)
        ]
        for group in groups
    }
    rows: dict[str, list[Row]] = {"watermarks": [], "commits": [], "groups": [], "members": [], "topics": []}
    states = {group: chance.one_of(STATES) for group in groups}
    types = {group: chance.one_of(TYPES) for group in groups}
    previous = times[0]
    for index, at in enumerate(times):
        stamp = {"sample_id": sample_id(index), "sampled_at": moment(at)}
        for log in logs:
            _advance(chance, log, at - previous)
        for group in groups:
            if chance.hit(0.1):
                states[group] = chance.one_of(STATES)
            _sample_group(chance, stamp, group, states[group], types[group], readers[group], at - previous, rows)
        for log in logs:
            if chance.hit(0.995):
                rows["watermarks"].append(stamp | _ends(chance, log))
        previous = at
    for topic in sorted({log.topic for log in logs}):
        if chance.hit(0.8):
            rows["topics"].append(
                {"sample_id": sample_id(0), "sampled_at": moment(times[0]), "topic": topic}
                | {
                    "retention_ms": chance.one_of((-1, 60_000, 600_000, 604_800_000, None)),
                    "retention_bytes": chance.one_of((None, -1, 1_000_000)),
                    # By the seed, not by chance: that would make all the histories others.
                    "segment_ms": (None, 60_000, 604_800_000)[seed % 3],
                    "cleanup_policy": chance.one_of(("delete", "compact", "compact,delete", None)),
                }
            )
    for name in rows:
        chance.random.shuffle(rows[name])
    span = times[-1] - times[0]
    return Trace(
        name=f"random-{seed}",
        story="",
        sample_interval_s=interval,
        evaluate_every_s=max(interval, span / (1 + chance.upto(2))),
        offsets_retention_s=chance.one_of((None, 900.0, 86_400.0)),
        lag_objective_s=chance.one_of((60.0, 300.0)),
        risk_horizon_s=chance.one_of((600.0, 21_600.0)),
        sample_times=times,
        rows=rows,
        truth=(),
    )


def _times(chance: _Chance, interval: float) -> tuple[float, ...]:
    count = 1 + chance.upto(chance.one_of((4, 20, 60, 90)))
    jitters = chance.hit(0.5)
    at, times = chance.upto(120) * 1.0, []
    for _ in range(count):
        times.append(round(at + (interval * 0.2 * chance.random.random() if jitters else 0.0), 3))
        at += interval
        if chance.hit(0.03):
            at += interval * chance.upto(30)
    return tuple(times)


def _logs(chance: _Chance) -> list[_Log]:
    logs = []
    for number in range(1 + chance.upto(2)):
        id_ = f"id-{number}-0" if chance.hit(0.8) else None
        rate = chance.one_of((0.0, 0.01, 0.5, 20.0, 5000.0))
        high = chance.one_of((0, 50, 10_000, 3_000_000_000))
        for partition in range(1 + chance.upto(1)):
            start = chance.upto(high) if chance.hit(0.5) else 0
            logs.append(_Log(f"topic-{number}", partition, high, start, id_, rate, chance.hit(0.3)))
    return logs


def _advance(chance: _Chance, log: _Log, seconds: float) -> None:
    log.high += int(log.rate * seconds * 2 * chance.random.random() + chance.random.random())
    if chance.hit(0.05):
        log.rate = chance.one_of((0.0, 0.05, 2.0, 20.0, 300.0))
    if chance.hit(0.03):
        log.start += chance.upto(max(0, log.high - log.start))
    if chance.hit(0.01):
        log.high, log.start = chance.upto(log.high * 1.5), 0
        log.id = f"{log.topic}-{chance.upto(1e6)}" if chance.hit(0.9) else None
    if chance.hit(0.005):
        log.high = max(log.start, log.high - chance.upto(500))
    if chance.hit(0.02):
        log.readable = not log.readable


def _ends(chance: _Chance, log: _Log) -> Row:
    key = {"topic": log.topic, "partition": log.partition}
    if not log.readable:
        return key | {"log_start": None, "high_watermark": None, "last_stable": None, "topic_id": None}
    stable = log.high - chance.upto(30) if log.keeps_stable else None
    ends = {"log_start": log.start, "high_watermark": log.high, "last_stable": stable}
    if chance.hit(0.01):
        ends[chance.one_of(("log_start", "high_watermark", "last_stable"))] = None
    return key | ends | {"topic_id": log.id if chance.hit(0.97) else None}


def _sample_group(
    chance: _Chance,
    stamp: Row,
    group: str,
    state: str | None,
    type_: str | None,
    readers: list[_Reader],
    seconds: float,
    rows: dict[str, list[Row]],
) -> None:
    owners: dict[tuple[str, int], str] = {}
    members = [f"{group}-member-{n}" for n in range(chance.upto(2))] if state in ("Stable", "Reconciling") else []
    for reader in readers:
        if members and chance.hit(0.8):
            owners[reader.log.topic, reader.log.partition] = chance.one_of(tuple(members))
    if chance.hit(0.97):
        error = "timed_out" if chance.hit(0.01) else None
        rows["groups"].append(
            stamp | {"group": group, "state": state, "type": type_, "member_count": len(members), "error": error}
        )
    for member in members:
        owned: dict[str, list[int]] = {}
        for (topic, partition), owner in owners.items():
            if owner == member:
                owned.setdefault(topic, []).append(partition)
        if chance.hit(0.1):
            owned.setdefault("elsewhere", []).append(0)
        rows["members"].append(
            stamp
            | {
                "group": group,
                "member_id": member,
                "client_id": member.rsplit("-", 1)[0] if chance.hit(0.9) else None,
                "host": "10.0.0.1" if chance.hit(0.9) else None,
                "assignment": [{"topic": t, "partitions": sorted(ps)} for t, ps in sorted(owned.items())],
                "assigned_partitions": sum(len(ps) for ps in owned.values()),
            }
        )
    for reader in readers:
        _read(chance, reader, seconds)
        log = reader.log
        if chance.hit(0.98):
            rows["commits"].append(
                stamp
                | {
                    "group": group,
                    "topic": log.topic,
                    "partition": log.partition,
                    "committed": reader.committed,
                    "next_record": _next_record(reader.committed),
                    "committed_at": _committed_at(reader.committed, stamp["sampled_at"]),
                    "owner": owners.get((log.topic, log.partition)),
                }
            )


def _next_record(committed: int | None) -> int | None:
    """Looked up of every tenth offset: a little further on, or behind what is committed now."""
    if committed is None or committed % 10:
        return None
    return max(0, committed + committed // 10 % 40 - 5)


def _committed_at(committed: int | None, sampled_at: datetime) -> datetime | None:
    """Known of every third offset: some time ago."""
    if committed is None or committed % 3:
        return None
    return sampled_at - timedelta(seconds=committed % 1000)


def _read(chance: _Chance, reader: _Reader, seconds: float) -> None:
    if chance.hit(0.03):
        reader.commits = not reader.commits
    if chance.hit(0.05):
        reader.speed = reader.log.rate * 3 * chance.random.random()
    if reader.committed is None:
        reader.committed = reader.log.start if chance.hit(0.1) else None
        return
    if reader.commits:
        step = int(reader.speed * seconds + chance.random.random())
        reader.committed = max(reader.committed, min(reader.log.high, max(reader.committed, reader.log.start) + step))
    surprises: list[tuple[float, Callable[[int], int | None]]] = [
        (0.01, lambda committed: max(0, committed - chance.upto(5000))),
        (0.005, lambda committed: committed + chance.upto(100_000)),
        (0.005, lambda _: None),
        (0.01, lambda _: min(reader.log.high, reader.log.start)),
    ]
    for probability, becomes in surprises:
        if reader.committed is not None and chance.hit(probability):
            reader.committed = becomes(reader.committed)
