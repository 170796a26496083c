"""Both engines count the same losses: of readers that are overtaken again and again, and of logs that their own readers
purge."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lagwise.domain.vocabulary import Status
from lagwise.traces.trace import Row, Trace, read_trace
from tests.contract.histories import history
from tests.contract.oracle import shown_by_oracle
from tests.contract.spark_replay import shown_of
from tests.contract.test_engines_agree import differences
from tests.traces.make import pairs, steps
from tests.traces.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: What topics keep: without any limit a client must have deleted what is gone, within a week likely, within a minute
#: nobody knows.
KEPT_MS = (-1, 604_800_000, 60_000, None)


@pytest.mark.timeout(900)
def test_on_readers_that_are_overtaken_again_and_again(spark: "SparkSession") -> None:
    batch = [overtaken(history(seed), seed) for seed in range(100)]
    lost: Counter[str] = Counter()
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert differences(shown, shown_by_oracle(trace)) == []
        losses = [one.lost for one in shown if one.topic is not None]
        lost["some"] += sum(its.at_least > 0 for its in losses)
        lost["more, maybe"] += sum(its.at_most > its.at_least > 0 for its in losses)
    assert min(lost["some"], lost["more, maybe"]) >= 30, lost


@pytest.mark.timeout(900)
def test_on_logs_that_their_readers_purge(spark: "SparkSession") -> None:
    batch = [purged(history(seed), seed) for seed in range(100)]
    losing: Counter[bool] = Counter()
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert differences(shown, shown_by_oracle(trace)) == []
        losing.update(one.status == Status.LOSING_DATA for one in shown)
    assert min(losing[True], losing[False]) >= 10, losing


@pytest.mark.timeout(900)
def test_on_hours_in_which_a_loss_shows_and_others_in_which_none_does(spark: "SparkSession", tmp_path: Path) -> None:
    """A reader is overtaken for a while, and reads on at the edge of what is kept: from then on what the log start
    passes beyond the commit of the sample before adds nothing."""
    world = World("edge", "", minutes=190, interval_s=30, evaluate_every_s=1500)
    world.topic("t", rate=100, kept_s=600, retention_ms=600_000)
    group = world.group("g", {"m-1": pairs("t", 1)}, commit_every_s=1)
    group.speed["t", 0] = steps((0, 500), (700, 0), (1250, 99), (3390, 100))
    world.run()
    trace = read_trace(world.write(tmp_path))
    (shown,) = shown_of(spark, [trace])
    assert differences(shown, shown_by_oracle(trace)) == []
    reported = [(one.time_s, one.lost) for one in shown if one.topic is not None and one.lost.at_least]
    assert len(reported) >= 4
    (before, lost), (last, at_last) = reported[-2:]
    assert last > before
    assert at_last == lost._replace(first_seconds=at_last.first_seconds, last_seconds=at_last.last_seconds), (
        "an hour without a loss adds nothing"
    )
    assert at_last.at_least <= group.lost["t", 0] <= at_last.at_most


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
