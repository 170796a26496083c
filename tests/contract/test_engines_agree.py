"""Spark computes what the domain defines: the same verdict and the same numbers, row by row.

On every trace, whose stories are what happens in life, and on random histories, whose nastiness is what the rules'
authors did not think of. A failure names the trace (a random one by its seed: ``history(seed)`` makes it again).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason
from lagwise.traces.trace import Row, Trace, moment, sample_id
from lagwise_app.replay.shown import Shown
from lagwise_app.replay.trace_events import events_of
from tests.contract.histories import history
from tests.contract.oracle import evaluation_at, shown_by_oracle
from tests.contract.spark_replay import shown_of
from tests.traces.replayed import traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

#: The plain-Python definition reads the whole history at every moment: some moments of each trace are enough.
EVERY = 7
#: Seeds on which the engines disagreed once: durations that lie exactly on a limit.
FOUND_BY_THE_LONG_RUN = (1132,)
#: Random histories that Spark replays in one go.
BATCH = 500


@pytest.mark.timeout(900)
def test_on_every_trace(spark: "SparkSession") -> None:
    compared = 0
    for trace, shown in zip(traces(), shown_of(spark, traces()), strict=True):
        times = trace.evaluation_times[::EVERY]
        seen = [one for one in shown if one.time_s in times]
        assert differences(seen, shown_by_oracle(trace, times)) == []
        compared += len(seen)
    assert compared > 1000


@pytest.mark.timeout(900)
def test_on_random_histories(spark: "SparkSession") -> None:
    counts: Counter[str] = Counter()
    assert list(disagreements(spark, [*range(250), *FOUND_BY_THE_LONG_RUN], counts)) == []
    # Every word has been put to the test, not only the easy ones.
    words = [*Status, *(f"unknown:{reason}" for reason in UnknownReason if reason is not UnknownReason.NOT_COMMITTING)]
    assert {word: counts[word] for word in words if counts[word] < 3} == {}


@pytest.mark.timeout(900)
def test_on_groups_that_could_not_be_read(spark: "SparkSession") -> None:
    """As the collector leaves them: with an error and without commits, some from the beginning, some from a time on."""
    batch = [unreadable(history(seed), seed) for seed in range(20)]
    said: Counter[str] = Counter()
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert list(differences(shown, shown_by_oracle(trace))) == []
        said.update(one.sentence for one in shown if one.topic is None and one.sentence)
    assert sum(n for sentence, n in said.items() if "Describe on the group" in sentence) >= 20


@pytest.mark.timeout(900)
def test_on_groups_with_objectives_of_their_own(spark: "SparkSession") -> None:
    """Each word and sentence by the group's own objective, in either direction from the common one."""
    batch = [replace(history(seed), lag_objectives_s={"group-0": (1.0, 20.0, 3600.0)[seed % 3]}) for seed in range(100)]
    others = 0
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert list(differences(shown, shown_by_oracle(trace))) == []
        common = shown_by_oracle(replace(trace, lag_objectives_s={}))
        others += sum(a.status != b.status for a, b in zip(shown, common, strict=True))
    assert others >= 10


@pytest.mark.timeout(900)
def test_on_groups_with_external_offsets(spark: "SparkSession") -> None:
    """Jobs that run and commit nothing yet, or nothing at all, that are restarted, and offsets of which nobody knows
    who writes them."""
    # (Seed 87 has a rate that lies just between two roundings: the order of a sum decides on its last digit.)
    batch = [with_external_offsets(history(seed), seed) for seed in range(80)]
    said: Counter[str] = Counter()
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert list(differences(shown, shown_by_oracle(trace))) == []
        those = [one for one in shown if one.topic is not None]
        said.update(f"{one.status}:{one.reason}" for one in those)
        said["held up"] += sum(one.status == Status.STALLED and one.numbers["lag"] is None for one in those)
    words = ("unknown:not_committing", "unknown:no_commit", "stopped:None", "stalled:None", "held up")
    assert {word: said[word] for word in words if said[word] < 3} == {}


@pytest.mark.timeout(900)
def test_on_logs_that_are_deleted_by_size(spark: "SparkSession") -> None:
    """In segments of every size, with readers that stand still, fall behind and are overtaken."""
    batch = [in_segments(history(seed), seed) for seed in range(150)]
    losses: Counter[str] = Counter()
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert list(differences(shown, shown_by_oracle(trace))) == []
        to_come = [s.numbers["seconds_to_loss"] for s in shown if s.topic and s.loss_cause == LossCause.DELETION]
        losses.update("at once" if seconds == 0 else "later" for seconds in to_come)
    assert min(losses["at once"], losses["later"]) >= 10, losses


@pytest.mark.timeout(900)
def test_on_histories_of_a_day_and_more(spark: "SparkSession") -> None:
    """Slow enough for rhythms that only a day shows, with pauses that come again and again."""
    batch = [stretched(history(seed), 2 + seed % 4) for seed in range(60)]
    rhythms = 0
    for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
        assert list(differences(shown, shown_by_oracle(trace))) == []
        last = evaluation_at(trace, trace.sample_times[-1], events_of(trace))
        cadences = [judged.evidence.commit_cadence_seconds or 0.0 for judged in last.partitions.values()]
        rhythms += sum(cadence >= 2 * trace.sample_interval_s for cadence in cadences)
    assert rhythms >= 20


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


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_on_ten_thousand_random_histories(spark: "SparkSession") -> None:
    assert list(disagreements(spark, range(1_000, 11_000), Counter())) == []


def disagreements(spark: "SparkSession", seeds: Sequence[int], counts: Counter[str]) -> Iterator[str]:
    """Every difference between the engines on the histories of these seeds, counting the words they agree on."""
    for start in range(0, len(seeds), BATCH):
        batch: list[Trace] = [history(seed) for seed in seeds[start : start + BATCH]]
        for trace, shown in zip(batch, shown_of(spark, batch), strict=True):
            yield from differences(shown, shown_by_oracle(trace))
            for one in shown:
                counts[one.status] += 1
                if one.reason:
                    counts[f"{one.status}:{one.reason}"] += 1


def differences(shown: Sequence[Shown], defined: Sequence[Shown]) -> list[str]:
    """In words, what one engine shows and the other does not, or differently."""
    ours, theirs = ({(s.time_s, s.group, s.topic, s.partition): s for s in some} for some in (shown, defined))
    assert len(ours) == len(shown)
    found = [f"{defined[0].trace}: shown by one engine only: {key}" for key in ours.keys() ^ theirs.keys()]
    for key in ours.keys() & theirs.keys():
        one, other = ours[key], theirs[key]
        for name in ("status", "reason", "reasons", "sentence", "loss_cause"):
            if getattr(one, name) != getattr(other, name):
                found.append(f"{one.trace} {key}: {name} {getattr(one, name)} is defined as {getattr(other, name)}")
        numbers, defined_numbers = _numbers(one), _numbers(other)
        for name, value in defined_numbers.items():
            if not same(numbers[name], value):
                found.append(f"{one.trace} {key}: {name} {numbers[name]} is defined as {value}")
    return found


def _numbers(shown: Shown) -> dict[str, Any]:
    return dict(shown.numbers) | dict(shown.forecasts) | shown.lost._asdict()


def same(one: Any, other: Any) -> bool:
    """Equal; a measured number to a millionth."""
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(one, Forecast) and isinstance(other, Forecast):
        return all(same(a, b) for a, b in zip(astuple(one), astuple(other), strict=True))
    return bool(one == other)
