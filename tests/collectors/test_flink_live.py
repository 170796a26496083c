"""A real Flink job on a real broker: what the collector shows of it, and what the rules say."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import Any

import pytest

from lagwise.config.external_offsets import FlinkJobs
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.service_times import JOBS
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors import flink_job
from tests.collectors.kafka import Lab, eventually, rows
from tests.collectors.test_external_offsets_kafka import History, committed, group_row, history

pytestmark = [pytest.mark.long, pytest.mark.broker, pytest.mark.timeout(900)]


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    return flink_job.classpath(tmp_path_factory.mktemp("classes"))


@contextmanager
def watched(
    lab: Lab, classpath: str, topic: str, group: str, *, interval_ms: int, ms_per_record: int = 0
) -> Iterator[History]:
    """The job runs with a checkpoint every ``interval_ms`` (0 is none), and its cluster is sampled."""
    bootstrap = lab.settings["bootstrap.servers"]
    job = flink_job.running(
        classpath, bootstrap=bootstrap, topic=topic, group=group, interval_ms=interval_ms, ms_per_record=ms_per_record
    )
    with job as url, history(lab, FlinkJobs(name="jobs", url=url, jobs={"orders-job": group})) as seen:
        yield seen


def test_a_job_that_keeps_up_is_not_dead_though_its_group_is_empty(lab: Lab, classpath: str) -> None:
    topic, group = lab.topic("shop.orders", partitions=4), lab.name("flink")
    with watched(lab, classpath, topic, group, interval_ms=1000) as seen:
        lab.produce(topic, dict.fromkeys(range(4), 100))

        def caught_up() -> bool:
            those = committed(seen.sample(), group)
            return {key: offset for key, (offset, _) in those.items()} == {(topic, p): 100 for p in range(4)}

        eventually(caught_up)
        assert seen.last is not None
        owners = {owner for _, owner in committed(seen.last, group).values()}
        row = group_row(seen.last, group)
        assert (row["state"], row["type"], row["member_count"]) == ("RUNNING", "flink", 1)
        assert row["checkpoint_interval_seconds"] == 1.0
        (reported,) = rows(seen.last, JOBS)
        assert owners == {reported["job_id"]}
        assert [vertex["name"] for vertex in reported["vertices"]] == ["Source: kafka-orders", "price", "Sink: Writer"]
        # One TaskManager of three slots, and vertices of two subtasks each that share them.
        assert (reported["slots_total"], reported["slots_free"]) == (3, 1)
        assert {vertex["slots_held"] for vertex in reported["vertices"]} == {2}
        for _ in range(12):
            lab.produce(topic, dict.fromkeys(range(4), 10))
            seen.sample()
        eventually(lambda: seen.sample() is not None and seen.said(group) == (Status.OK, None))


def test_an_overloaded_job_is_stalled_while_its_source_has_read_everything(lab: Lab, classpath: str) -> None:
    topic, group = lab.topic("orders", partitions=4), lab.name("flink")
    lab.produce(topic, dict.fromkeys(range(4), 3000))
    with watched(lab, classpath, topic, group, interval_ms=5000, ms_per_record=200) as seen:
        eventually(lambda: set(committed(seen.sample(), group)) == {(topic, p) for p in range(4)})
        assert seen.said(group) == (Status.UNKNOWN, UnknownReason.NO_COMMIT)
        # It is due for 90 s of Flink's own clock.
        eventually(lambda: seen.sample() is not None and seen.said(group) == (Status.STALLED, None))
        assert seen.last is not None
        assert {offset for offset, _ in committed(seen.last, group).values()} == {None}

        def fetched() -> list[dict[str, Any]] | None:
            """Flink fetches its metrics every ten seconds: reads in between show nothing."""
            (reported,) = rows(seen.sample(), JOBS)
            assert reported["checkpoints_completed"] == 0
            known = all(vertex["busy_share"] is not None for vertex in reported["vertices"][:2])
            return reported["vertices"] if known else None

        source, price, _ = eventually(fetched)
        assert price["busy_share"] > 0.9
        assert source["busy_share"] < 0.5


def test_busy_time_yields_the_capacity_of_the_job(lab: Lab, classpath: str) -> None:
    """Each of the subtasks takes 10 ms for a record, and is given far less than it can do."""
    topic, group = lab.topic("orders", partitions=4), lab.name("flink")
    with watched(lab, classpath, topic, group, interval_ms=1000, ms_per_record=10) as seen:
        eventually(lambda: set(committed(seen.sample(), group)) == {(topic, p) for p in range(4)})
        looks = []

        def is_read(records: int) -> bool:
            those = committed(seen.sample(), group)
            assert seen.last is not None
            looks.extend(v for reported in rows(seen.last, JOBS) for v in reported["vertices"] if v["name"] == "price")
            return {offset for offset, _ in those.values()} == {records}

        for batch in range(1, 21):  # each waits for a checkpoint, about a second
            lab.produce(topic, dict.fromkeys(range(4), 15))
            eventually(lambda wanted=15 * batch: is_read(wanted))
        reported = [v for v in looks if v["busy_share"] is not None and v["records_in_per_second"] is not None]
        busy = fmean(v["busy_share"] for v in reported)
        assert 0.1 < busy < 0.9
        can_do = fmean(v["records_in_per_second"] for v in reported) / busy
        # Never more than it can do; and less, as waking up from a wait of 10 ms takes its time, too.
        assert 0.65 <= can_do / (reported[0]["parallelism"] * 100) <= 1.1


def test_a_job_without_checkpoints_does_not_commit(lab: Lab, classpath: str) -> None:
    topic, group = lab.topic("orders", partitions=2), lab.name("flink")
    lab.produce(topic, {0: 10, 1: 10})
    with watched(lab, classpath, topic, group, interval_ms=0) as seen:
        eventually(lambda: set(committed(seen.sample(), group)) == {(topic, 0), (topic, 1)})
        assert seen.said(group) == (Status.UNKNOWN, UnknownReason.NOT_COMMITTING)
