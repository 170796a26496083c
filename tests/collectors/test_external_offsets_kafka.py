"""From a place where offsets are kept, through a sample of a real broker, to the verdict of the rules."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lagwise.config.external_offsets import ExternalOffsetSource, FlinkJobs, OffsetFiles, SparkCheckpoints, SqlOffsets
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.raw import COMMITS, GROUPS, SAMPLES, WATERMARKS
from lagwise.tables.service_times import JOBS
from lagwise.traces.trace import moment, sample_id
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.flink_server import FlinkServer
from tests.collectors.kafka import Lab, rows
from tests.traces.judged import Evaluation, judged, trace_of

pytestmark = pytest.mark.broker

TABLES = ("commits", "watermarks", "groups", "members", "topics")


class History:
    """Samples of a cluster every 15 s of a clock of the test's own, and what the rules say of them."""

    def __init__(self, lab: Lab, sources: tuple[ExternalOffsetSource, ...]) -> None:
        self.now = datetime.now(UTC)
        self.source = KafkaSource(lab.cluster(external_offsets=sources), clock=lambda: self.now)
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in (*TABLES, "events")}
        self.last: Snapshot | None = None
        self._known = PreviousSample()

    def sample(self) -> Snapshot:
        self.now += timedelta(seconds=15)
        self.last = self.source.collect()
        found = compare_samples(self._known, self.last)
        self._known = found.latest
        for name in TABLES:
            table = self.last.tables.get(name)
            self.rows[name] += [] if table is None else table.to_pylist()
        self.rows["events"] += found.rows.to_pylist()
        return self.last

    def judged(self) -> Evaluation:
        times = {row["sample_id"]: row["sampled_at"] for row in self.rows["groups"]}
        number = {sample: sample_id(n) for n, sample in enumerate(times)}
        rows = {table: [row | {"sample_id": number[row["sample_id"]]} for row in self.rows[table]] for table in TABLES}
        trace = trace_of(rows, [(at - moment(0.0)).total_seconds() for at in times.values()])
        ((_, evaluation),) = judged(trace, [len(times) - 1], self.rows["events"])
        return evaluation

    def said(self, group: str) -> tuple[Status, UnknownReason | None]:
        verdict = self.judged().groups[group]
        return verdict.status, verdict.reason


@contextmanager
def history(lab: Lab, *sources: ExternalOffsetSource) -> Iterator[History]:
    made = History(lab, sources)
    try:
        yield made
    finally:
        made.source.close()


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


def committed(snapshot: Snapshot, group: str) -> dict[tuple[str, int], tuple[int | None, str | None]]:
    return {
        (row["topic"], row["partition"]): (row["committed"], row["owner"])
        for row in rows(snapshot, COMMITS)
        if row["group"] == group
    }


def group_row(snapshot: Snapshot, group: str) -> dict[str, Any]:
    (row,) = (row for row in rows(snapshot, GROUPS) if row["group"] == group)
    return row


def test_offsets_in_a_database_are_judged_like_any_others(lab: Lab, tmp_path: Path) -> None:
    topic, group = lab.topic(partitions=2), lab.name("billing")
    path = tmp_path / "offsets.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute('create table progress ("group", topic, "partition", "offset", updated_at)')
        database.executemany("insert into progress values (?, ?, ?, 0, null)", [(group, topic, p) for p in (0, 1)])
        query = "select * from progress"
        with history(lab, SqlOffsets(name="db", url=f"sqlite:///{path}", query=query)) as seen:
            read = 0
            for _ in range(12):
                lab.produce(topic, {0: 20, 1: 20})
                read += 20
                database.execute('update progress set "offset" = ?', [read])
                snapshot = seen.sample()
            assert committed(snapshot, group) == {(topic, 0): (240, None), (topic, 1): (240, None)}
            row = group_row(snapshot, group)
            assert (row["state"], row["type"], row["source"], row["member_count"]) == ("Recorded", "sql", "db", None)
            header = snapshot.header
            assert header["commits_read_at"] <= header["watermarks_read_at"]
            assert header["errors"] == []
            assert seen.said(group) == (Status.OK, None)
            for _ in range(8):
                lab.produce(topic, {0: 20, 1: 20})
                seen.sample()
            verdict = seen.judged().groups[group]
            assert verdict.status is Status.STOPPED
            assert verdict.numbers.lag_records == 320
            assert "in a database, and nothing writes them any more" in verdict.sentence
            path.rename(tmp_path / "away.db")
            snapshot = seen.sample()
            assert snapshot.errors == {"external_offsets_unreachable": 1}
            assert seen.said(group) == (Status.UNKNOWN, UnknownReason.UNREADABLE)
            assert [event["kind"] for event in seen.rows["events"]] == []


def test_a_flink_job_whose_checkpoints_do_not_complete_is_stalled(lab: Lab) -> None:
    flink, group = FlinkServer("overloaded"), lab.name("flink")
    topic = lab.topic("shop.orders", partitions=4)
    lab.produce(topic, dict.fromkeys(range(4), 50))
    _rename(flink, "shop_orders-v1", topic.replace(".", "_"))
    flink.details["now"] = flink.job["start-time"] + 60_000
    with flink.running() as url, history(lab, FlinkJobs(name="jobs", url=url, jobs={"orders-job": group})) as seen:
        snapshot = seen.sample()
        # Kafka has never heard of the group; Flink spells the topic with underscores.
        assert committed(snapshot, group) == {(topic, p): (None, flink.jid) for p in range(4)}
        assert {row["high_watermark"] for row in rows(snapshot, WATERMARKS)} == {50}
        assert seen.said(group) == (Status.UNKNOWN, UnknownReason.NO_COMMIT)
        flink.details["now"] += 30_000
        seen.sample()
        verdict = seen.judged().groups[group]
        assert (verdict.status, verdict.numbers.lag_records) == (Status.STALLED, None)
        assert "No checkpoint was ever completed" in verdict.sentence
        assert "client orders-job" in verdict.sentence
        # Without checkpoints at all it is another matter.
        flink.answers[f"/v1/jobs/{flink.jid}/checkpoints/config"]["interval"] = 2**63 - 1
        flink.job["jid"], before = "f" * 32, flink.jid
        for path in [path for path in flink.answers if before in path]:
            flink.answers[path.replace(before, "f" * 32)] = flink.answers.pop(path)
        seen.sample()
        assert seen.said(group) == (Status.UNKNOWN, UnknownReason.NOT_COMMITTING)


def test_a_running_flink_job_with_an_empty_group_is_not_dead(lab: Lab) -> None:
    flink, group = FlinkServer("healthy"), lab.name("flink")
    topic = lab.topic("orders", partitions=4)
    _rename(flink, "orders", topic)
    with flink.running() as url, history(lab, FlinkJobs(name="jobs", url=url, jobs={"orders-job": group})) as seen:
        offset = 0
        for _ in range(12):
            lab.produce(topic, dict.fromkeys(range(4), 10))
            offset += 10
            lab.commit(group, topic, dict.fromkeys(range(4), offset))
            flink.set_metrics("currentOffset", offset - 1)
            flink.set_metrics("committedOffset", offset)
            snapshot = seen.sample()
        row = group_row(snapshot, group)
        assert (row["state"], row["type"], row["source"], row["member_count"]) == ("RUNNING", "flink", "jobs", 1)
        assert row["checkpoint_interval_seconds"] == 2.0
        (reported,) = rows(snapshot, JOBS)
        assert (reported["group"], reported["source"], reported["job_id"], reported["job"]) == (
            group,
            "jobs",
            flink.jid,
            "orders-job",
        )
        assert [vertex["name"] for vertex in reported["vertices"]] == ["Source: kafka-orders", "price", "Sink: Writer"]
        assert (reported["slots_total"], reported["slots_free"], reported["vertices"][0]["slots_held"]) == (3, 1, 2)
        assert committed(snapshot, group) == {(topic, p): (offset, flink.jid) for p in range(4)}
        assert seen.said(group) == (Status.OK, None)
        # The source goes on, its checkpoints do not: every lag metric of Flink says 0.
        for _ in range(6):
            lab.produce(topic, dict.fromkeys(range(4), 10))
            flink.set_metrics("currentOffset", 10_000)
            seen.sample()
        assert seen.said(group) == (Status.STALLED, None)
        flink.job["state"] = "FAILED"
        seen.sample()
        verdict = seen.judged().groups[group]
        assert verdict.status is Status.STOPPED
        assert "Its Flink job does not run (FAILED)" in verdict.sentence
        # No answer: Kafka still shows how far the group is, but whether the job runs is unknown.
        flink.answers["/v1/jobs/overview"] = 503
        snapshot = seen.sample()
        assert snapshot.errors == {"external_offsets_unreachable": 1}
        verdict = seen.judged().groups[group]
        assert verdict.numbers.lag_records == 240
        assert verdict.status not in (Status.STOPPED, Status.UNKNOWN)
        assert {event["kind"] for event in seen.rows["events"]} == {"state_changed"}


def test_files_and_checkpoints_together_with_kafka_groups(lab: Lab, tmp_path: Path) -> None:
    topic = lab.topic(partitions=1)
    lab.produce(topic, {0: 30})
    lab.commit(lab.name("plain"), topic, {0: 11})
    (tmp_path / "offsets.json").write_text(
        json.dumps(
            [
                {"group": lab.name("mail"), "topic": topic, "partition": 0, "offset": 12},
                {"group": lab.name("typo"), "topic": lab.name("no-such-topic"), "partition": 0, "offset": 12},
                {"group": "of-somebody-else", "topic": topic, "partition": 0, "offset": 12},
            ]
        )
    )
    query = tmp_path / lab.name("query")
    for log, text in (("offsets", f'{{}}\n{{"{topic}": {{"0": 13}}}}'), ("commits", "{}")):
        (query / log).mkdir(parents=True)
        (query / log / "0").write_text(f"v1\n{text}")
    sources = (
        OffsetFiles(name="files", path=str(tmp_path / "offsets.json")),
        SparkCheckpoints(name="spark", path=str(tmp_path / f"{lab.prefix}-*")),
    )
    with history(lab, *sources) as seen:
        for _ in range(3):
            snapshot = seen.sample()
        assert {row["group"]: row["source"] for row in rows(snapshot, GROUPS)} == {
            lab.name("plain"): None,
            lab.name("mail"): "files",
            lab.name("typo"): "files",
            lab.name("query"): "spark",
        }
        assert committed(snapshot, lab.name("mail")) == {(topic, 0): (12, None)}
        assert committed(snapshot, lab.name("query")) == {(topic, 0): (13, None)}
        (reported,) = (r["committed_at"] for r in rows(snapshot, COMMITS) if r["group"] == lab.name("query"))
        assert abs(reported - datetime.now(UTC)) < timedelta(minutes=10)
        # A topic that is not there costs the group that names it.
        assert seen.said(lab.name("typo")) == (Status.UNKNOWN, UnknownReason.UNREADABLE)
        lags = {pair.group: row.lag for pair, row in seen.judged().partitions.items()}
        assert lags == {lab.name("plain"): 19, lab.name("mail"): 18, lab.name("query"): 17, lab.name("typo"): None}
        assert rows(snapshot, SAMPLES)[0]["group_partitions"] == 4


def _rename(flink: FlinkServer, before: str, after: str) -> None:
    """Let the job read another topic, as Flink spells it."""
    for path, answer in flink.answers.items():
        if path.endswith("/metrics"):
            answer["ids"] = [name.replace(f".{before}.", f".{after}.") for name in answer["ids"]]
            answer["values"] = {name.replace(f".{before}.", f".{after}."): v for name, v in answer["values"].items()}
