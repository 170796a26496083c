"""Random histories of special kinds: each makes another one of a given history."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from lagwise.traces.trace import Row, Trace, moment, sample_id

#: What topics keep: without any limit a client must have deleted what is gone, within a week likely, within a minute
#: nobody knows.
KEPT_MS = (-1, 604_800_000, 60_000, None)


def stretched(trace: Trace, every: int) -> Trace:
    """The same history in about thirty hours, of groups that commit with every so manyth sample only."""
    origin = moment(0.0)
    slower = 1 + int(30 * 3600.0 / max(trace.sample_times[-1], 1.0))

    def later(value: Any) -> Any:
        return origin + slower * (value - origin) if isinstance(value, datetime) else value

    rows = {table: [{n: later(v) for n, v in row.items()} for row in its] for table, its in trace.rows.items()}
    held: dict[tuple[str, str, int], int | None] = {}

    def rare(row: Row) -> Row:
        pair = row["group"], row["topic"], row["partition"]
        if pair not in held or int(row["sample_id"]) % every == 0:
            held[pair] = row["committed"]
        return row | {"committed": held[pair], "next_record": None}

    rows["commits"] = [rare(row) for row in sorted(rows["commits"], key=lambda row: row["sample_id"])]
    return replace(
        trace,
        sample_interval_s=slower * trace.sample_interval_s,
        evaluate_every_s=slower * trace.evaluate_every_s,
        sample_times=tuple(slower * at for at in trace.sample_times),
        rows=rows,
    )


def in_turns(trace: Trace, seed: int) -> Trace:
    """The same history of groups of one member each that reads one partition after the other: each for one to three
    samples. Some leave one out from the middle on."""
    stays, hangs_from = 1 + seed % 3, len(trace.sample_times) // 2 if seed % 2 else len(trace.sample_times)
    pairs = sorted({(row["group"], row["topic"], row["partition"]) for row in trace.rows["commits"]})
    its = {group: [pair for pair in pairs if pair[0] == group] for group, _, _ in pairs}
    held: dict[tuple[str, str, int], int | None] = {}

    def taken(row: Row) -> Row:
        pair, number = (row["group"], row["topic"], row["partition"]), int(row["sample_id"])
        order = its[row["group"]]
        place = order.index(pair)
        is_its_turn = number // stays % len(order) == place and (place or number < hangs_from)
        if pair not in held or is_its_turn:
            held[pair] = row["committed"]
        return row | {"committed": held[pair], "next_record": None, "owner": f"{row['group']}-member-0"}

    rows = dict(trace.rows)
    rows["commits"] = [taken(row) for row in sorted(rows["commits"], key=lambda row: row["sample_id"])]
    return replace(trace, rows=rows)


def in_segments(trace: Trace, seed: int) -> Trace:
    """The same history of topics that are limited by size alone: a log keeps one to three segments, of which two to
    six are written within the history. From a third of it on, readers get on with a part of what they did, or none."""
    ends: dict[tuple[str, int], list[int]] = {}
    for row in trace.rows["watermarks"]:
        if row["high_watermark"] is not None:
            ends.setdefault((row["topic"], row["partition"]), []).append(row["high_watermark"])

    def start_of(row: Row) -> int | None:
        start: int | None = row["log_start"]
        if start is None or row["high_watermark"] is None:
            return start
        its = ends[row["topic"], row["partition"]]
        segment = max(1, (max(its) - min(its)) // (2 + seed % 5))
        whole: int = row["high_watermark"] // segment
        return max(0, whole - seed % 3) * segment

    rows = dict(trace.rows)
    rows["watermarks"] = [row | {"log_start": start_of(row)} for row in rows["watermarks"]]
    limits = {"retention_ms": None, "retention_bytes": 1_000_000, "cleanup_policy": "delete"}
    rows["topics"] = [row | limits for row in rows["topics"]]
    slow_from, keeps = sample_id(len(trace.sample_times) // 3), (0.0, 0.5, 0.9)[seed % 3]
    held: dict[tuple[str, str, int], int] = {}

    def slowed(row: Row) -> Row:
        if row["committed"] is None or row["sample_id"] < slow_from:
            return row
        first = held.setdefault((row["group"], row["topic"], row["partition"]), row["committed"])
        return row | {"committed": first + int(keeps * (row["committed"] - first)), "next_record": None}

    rows["commits"] = [slowed(row) for row in sorted(rows["commits"], key=lambda row: row["sample_id"])]
    return replace(trace, rows=rows)


def unreadable(trace: Trace, seed: int) -> Trace:
    """The same history with a collector that from a sample on may not describe its groups."""
    first = 0 if seed % 2 else len(trace.sample_times) // 2
    since = sample_id(first)
    rows = dict(trace.rows)
    unknown = {"state": None, "member_count": None, "error": "group_not_authorized"}
    rows["groups"] = [row | unknown if row["sample_id"] >= since else row for row in rows["groups"]]
    for table in ("commits", "members"):
        rows[table] = [row for row in rows[table] if row["sample_id"] < since]
    return replace(trace, rows=rows)


def with_external_offsets(trace: Trace, seed: int) -> Trace:
    """The same history of groups that have no protocol; every other one of them never committed anything."""
    kind = ("flink", "flink", "spark", "sql")[seed % 4]
    interval = (None, 5.0, 60.0, 600.0)[seed // 4 % 4]
    began = moment(trace.sample_times[0] - (0.0, 100.0, 4000.0)[seed % 3])

    def job(row: Row) -> Row:
        if kind != "flink":
            return row | {"type": kind, "state": "Recorded"}
        state = "RUNNING" if row["state"] in ("Stable", "Reconciling") else "RESTARTING"
        return row | {
            "type": kind,
            "state": state,
            "checkpointed_at": began if state == "RUNNING" else None,
            "checkpoint_interval_seconds": interval if state == "RUNNING" else None,
        }

    rows = trace.rows | {"groups": [job(row) for row in trace.rows["groups"]]}
    if seed // 16 % 2:
        rows["commits"] = [row | {"committed": None, "next_record": None} for row in rows["commits"]]
    return replace(trace, rows=rows)


def overtaken(trace: Trace, seed: int) -> Trace:
    """The same history of logs of which every few samples half is deleted. Readers that find their records deleted go
    on with the oldest there is."""
    every = 2 + seed % 5
    starts: dict[tuple[str, int], int] = {}
    start_at: dict[tuple[str, str, int], int] = {}

    def cut(row: Row) -> Row:
        log = row["topic"], row["partition"]
        start = max(starts.get(log, 0), row["log_start"] or 0)
        if row["high_watermark"] is not None:
            if int(row["sample_id"]) % every == 0:
                start = max(start, (start + row["high_watermark"]) // 2)
            start = min(start, row["high_watermark"])
        starts[log] = start_at[row["sample_id"], *log] = start
        return row | {"log_start": None if row["log_start"] is None else start}

    def reset(row: Row) -> Row:
        before = f"{int(row['sample_id']) - seed % 3:08d}"
        start = start_at.get((before, row["topic"], row["partition"]), 0)
        committed = row["committed"]
        return row | {"committed": None if committed is None else max(committed, start), "next_record": None}

    rows = {**trace.rows, "watermarks": [cut(row) for row in in_order(trace.rows["watermarks"])]}
    rows["commits"] = [reset(row) for row in trace.rows["commits"]]
    return replace(trace, rows=rows)


def purged(trace: Trace, seed: int) -> Trace:
    """The same history of logs that begin where one of their readers is: as its commit of this sample tells, or the
    next one, which it may have made before the watermarks were read."""
    commits: dict[tuple[str, str, int], int] = {}
    for row in sorted(trace.rows["commits"], key=lambda row: str(row["group"]), reverse=True):
        if row["committed"] is not None:
            commits[row["sample_id"], row["topic"], row["partition"]] = row["committed"]

    def follow(row: Row) -> Row:
        number = int(row["sample_id"]) + (int(row["sample_id"]) + seed) % 2
        start = commits.get((f"{number:08d}", row["topic"], row["partition"]), row["log_start"])
        if start is None or row["high_watermark"] is None:
            return row
        return row | {"log_start": min(start, row["high_watermark"])}

    kept = {"retention_ms": KEPT_MS[seed % len(KEPT_MS)], "retention_bytes": None, "cleanup_policy": "delete"}
    rows = {**trace.rows, "watermarks": [follow(row) for row in trace.rows["watermarks"]]}
    rows["topics"] = [row | kept for row in trace.rows["topics"]]
    return replace(trace, rows=rows)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row["sample_id"]))
