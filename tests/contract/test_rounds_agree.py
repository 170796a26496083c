"""Rounds of the analysis, from samples in a lake to its tables, say what the rules say of the same history.

The lake holds histories side by side, each as a cluster of its own, as a collector would have written them. Rounds come
rarely: the minutes between two of them are caught up on.
"""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lagwise.config import Cluster, Config
from lagwise.domain.verdicts.status import judge, stalled_after_seconds
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise.traces.judged import judged
from lagwise.traces.trace import Trace, moment, sample_id
from lagwise_app.replay.shown import Shown, shown_of
from lagwise_app.replay.trace_events import events_of
from tests.contract.differences import same
from tests.contract.histories import history
from tests.contract.variants import in_turns
from tests.traces.families import FAMILIES

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

_RAW = (COMMITS, WATERMARKS, GROUPS, MEMBERS, TOPICS)
#: Rounds on each history.
ROUNDS = 3


def judged_rarely(trace: Trace) -> Trace:
    """The same history, judged a few times."""
    times = trace.sample_times
    return replace(trace, evaluate_every_s=max(1, len(times) // ROUNDS) * trace.sample_interval_s)


def is_fit(trace: Trace) -> bool:
    """Whether rounds can be where the history is judged, and the rows before each hold what the next one goes by: who
    is further behind than an hour shows in the round before."""
    rounds = trace.evaluation_times[:ROUNDS]
    return len(rounds) == ROUNDS and {*rounds} <= {*trace.sample_times} and trace.evaluate_every_s <= 3600


class History:
    """Writes a trace into a lake as one cluster."""

    def __init__(self, trace: Trace, cluster: str) -> None:
        self.trace, self.cluster = trace, cluster
        self.shown: dict[float, list[Shown]] = {}
        for one in shown_of(trace):
            self.shown.setdefault(one.time_s, []).append(one)
        self.rounds = trace.evaluation_times[:ROUNDS]
        self._events = events_of(trace)
        self._index = 0

    def write_until(self, lake: Lake, at: float) -> None:
        """Append all samples up to this time that have not been written."""
        trace, first = self.trace, self._index
        self._index = trace.sample_at(at) + 1
        ids = {sample_id(n): f"{self.cluster}-{sample_id(n)}" for n in range(first, self._index)}
        for table in _RAW:
            rows = [
                {"cluster": self.cluster, **row, "sample_id": ids[row["sample_id"]]}
                for row in trace.rows[table.name]
                if row["sample_id"] in ids
            ]
            lake.append(table, table.from_rows(rows))
        since = moment(trace.sample_times[first - 1]) if first else datetime.min.replace(tzinfo=moment(0.0).tzinfo)
        events = [
            {**row, "cluster": self.cluster}
            for row in self._events
            if since < row["at"] <= moment(trace.sample_times[self._index - 1])
        ]
        lake.append(EVENTS, EVENTS.from_rows(events))
        lake.append(SAMPLES, SAMPLES.from_rows(self._sample(n) for n in range(first, self._index)))

    def _sample(self, number: int) -> dict[str, Any]:
        read_at = moment(self.trace.sample_times[number])
        times = ("started_at", "commits_read_at", "watermarks_read_at", "finished_at", "written_at")
        pairs = [row for row in self.trace.rows["commits"] if row["sample_id"] == sample_id(number)]
        return {
            "cluster": self.cluster,
            "system": "kafka",
            "sample_id": f"{self.cluster}-{sample_id(number)}",
            **dict.fromkeys(times, read_at),
            "interval_seconds": self.trace.sample_interval_s,
            "offsets_retention_seconds": self.trace.offsets_retention_s,
            "groups": 1,
            "group_partitions": len(pairs),
            "partitions": 1,
            "wall_seconds": 0.1,
            "cpu_seconds": 0.1,
            "errors": [],
        }


@pytest.mark.timeout(900)
def test_rounds_say_what_the_rules_say(spark: "SparkContext", lake: Lake) -> None:
    batch = [trace for trace in map(judged_rarely, map(history, range(100))) if is_fit(trace)]
    assert len(batch) >= 10
    say_the_same(spark, lake, batch)


@pytest.mark.timeout(900)
def test_rounds_know_what_owners_do_elsewhere(
    spark: "SparkContext", lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Owners that read one partition after the other, in ranges that each hold some of what an owner has."""
    from lagwise_spark.jobs import round_inputs

    batch = [judged_rarely(in_turns(history(seed), seed)) for seed in range(200)]
    # (Left for more than an hour, records are older than what a round reads.)
    batch = [t for t in batch if is_fit(t) and t.evaluation_times[ROUNDS - 1] <= 3600 and wait_for_their_turn(t)]
    assert len(batch) >= 5
    monkeypatch.setattr(round_inputs, "PAIRS_PER_TASK", 4)
    say_the_same(spark, lake, batch)


@pytest.mark.timeout(900)
def test_rounds_ask_owners_of_what_does_not_stand_yet(
    spark: "SparkContext", lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lag that only waits does not begin to grow, also where it has not waited for long enough to be a standstill."""
    from lagwise_spark.jobs import round_inputs

    trace = replace(FAMILIES["takes-turns"](16).trace(), evaluate_every_s=3090.0)
    assert is_fit(trace)
    assert lag_waits_without_standing(trace)
    monkeypatch.setattr(round_inputs, "PAIRS_PER_TASK", 4)
    say_the_same(spark, lake, [trace])


def lag_waits_without_standing(trace: Trace) -> bool:
    """Whether lag would begin to grow on a partition that waits and does not stand still."""
    rows = judged(trace, events_of(trace), trace.evaluation_times[:ROUNDS]).partitions
    waiting = {name: values[..., rows["awaits_turn"]] for name, values in rows.items()}
    if_it_hangs = judge({**waiting, "awaits_turn": np.zeros_like(waiting["awaits_turn"])})
    stands = if_it_hangs["stalled"] | if_it_hangs["stopped"]
    return bool(((if_it_hangs["status"] != waiting["status"]) & ~stands).any())


def wait_for_their_turn(trace: Trace) -> bool:
    """Whether partitions that stand still are told from others that hang."""
    rows = judged(trace, events_of(trace), trace.evaluation_times[:ROUNDS]).partitions
    return bool((rows["awaits_turn"] & (rows["standstill_seconds"] >= stalled_after_seconds(rows))).any())


def say_the_same(spark: "SparkContext", lake: Lake, batch: list[Trace]) -> None:
    from lagwise_spark.jobs.tick import tick

    horizon = batch[0].risk_horizon_s
    histories = [History(replace(trace, risk_horizon_s=horizon), f"c{number}") for number, trace in enumerate(batch)]
    config = Config(
        clusters=[
            Cluster(name=one.cluster, bootstrap="none:1", lag_objective_seconds=one.trace.lag_objective_s)
            for one in histories
        ],
        analysis={"risk_horizon_seconds": horizon},
    )
    compared, found = 0, []
    for number in range(ROUNDS):
        for one in histories:
            one.write_until(lake, one.rounds[number])
        tick(spark, lake, config)
        partitions, groups = (_by_cluster(lake.read(table).to_pylist()) for table in (PARTITION_STATUS, GROUP_STATUS))
        for one in histories:
            expected = one.shown[one.rounds[number]]
            its = {(r["group"], r["topic"], r["partition"]): r for r in partitions.get(one.cluster, [])}
            its |= {(r["group"], None, None): r for r in groups.get(one.cluster, [])}
            assert {(s.group, s.topic, s.partition) for s in expected} == set(its), one.trace.name
            for shown in expected:
                row = its[shown.group, shown.topic, shown.partition]
                said = {"status": shown.status, "reason": shown.reason, **shown.numbers}
                if shown.topic is None:
                    said["sentence"] = shown.sentence
                    # A trace has no raw samples from before: what changed is the rounds' own addition.
                    row = row | {"sentence": row["sentence"].removesuffix(f" {row['what_changed_sentence']}")}
                key = (one.trace.name, shown.time_s, shown.group, shown.topic, shown.partition)
                found += [f"{key}: {n} {row[n]} is defined as {v}" for n, v in said.items() if not same(row[n], v)]
                compared += 1
    assert found == [], "\n".join(found)
    assert compared >= len(batch) * ROUNDS * 2


def _by_cluster(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["cluster"], []).append(row)
    return found
