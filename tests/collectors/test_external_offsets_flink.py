"""Flink jobs as groups, from answers that a real Flink gave (see ``flink_server``) over real HTTP."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lagwise.config.external_offsets import FlinkJobs
from lagwise_collectors.external_offsets.flink_checkpoints import FlinkReader
from lagwise_collectors.external_offsets.model import ExternalGroup, OffsetSourceTrouble, SourceResult
from lagwise_collectors.external_offsets.sources import OffsetSources
from lagwise_collectors.protocol import ErrorTally
from tests.collectors.flink_server import RECORDED, FlinkServer

pytestmark = pytest.mark.thorough

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)

Started = Callable[..., tuple[FlinkServer, FlinkReader]]


@pytest.fixture
def started() -> Iterator[Started]:
    with ExitStack() as running:

        def start(recording: str, **settings: object) -> tuple[FlinkServer, FlinkReader]:
            server = FlinkServer(recording)
            url = running.enter_context(server.running())
            jobs = {"orders-job": "flink-orders"}
            chosen: dict[str, Any] = {"jobs": jobs, **settings}
            reader = FlinkReader(FlinkJobs(name="jobs", url=url, **chosen), lambda: AT)
            return server, reader

        yield start


def only(found: SourceResult) -> ExternalGroup:
    (group,) = found.groups.values()
    assert not found.errors
    return group


def committed(group: ExternalGroup, topic: str = "orders") -> dict[int, int | None]:
    assert {offset.topic for offset in group.offsets} == {topic}
    return {offset.partition: offset.committed for offset in group.offsets}


def test_the_recordings_are_those_that_the_tests_speak_of() -> None:
    assert set(RECORDED) == {"healthy", "overloaded", "silent", "uncheckpointed", "restarting", "dotted"}


def test_a_job_owns_what_it_reads_and_reports_what_it_committed(started: Started) -> None:
    server, reader = started("healthy")
    group = only(reader.read())
    assert (group.name, group.type, group.state) == ("flink-orders", "flink", "RUNNING")
    assert committed(group) == {0: 5000, 1: 5000, 2: 5000, 3: 5000}
    assert group.job is not None
    assert (group.job.id, group.job.name) == (server.jid, "orders-job")
    assert group.checkpoint_interval_seconds == 2.0


def test_the_age_of_the_last_checkpoint_is_by_our_clock(started: Started) -> None:
    server, reader = started("healthy")
    completed = server.checkpoints["latest"]["completed"]["latest_ack_timestamp"]
    server.details["now"] = completed + 60_000
    group = only(reader.read())
    assert group.checkpointed_at is not None
    # (Flink's clock went on while it was asked.)
    assert timedelta(seconds=60) <= AT - group.checkpointed_at < timedelta(seconds=90)


def test_a_job_without_a_name_in_the_settings_is_a_group_of_its_own_name(started: Started) -> None:
    _, reader = started("healthy", jobs={})
    assert only(reader.read()).name == "orders-job"


def test_an_overloaded_job_has_committed_nothing_regardless_of_its_metrics(started: Started) -> None:
    server, reader = started("overloaded")
    assert set(server.metrics("currentOffset").values()) == {"4999"}  # all is read, as far as the source goes
    group = only(reader.read())
    assert committed(group, "shop_orders-v1") == {0: None, 1: None, 2: None, 3: None}  # it is called shop.orders-v1
    # That is since it began.
    assert group.checkpointed_at is not None
    age_ms = server.details["now"] - server.job["start-time"]
    assert 0 <= (AT - group.checkpointed_at - timedelta(milliseconds=age_ms)).total_seconds() < 30


def test_a_job_without_checkpoints_says_so(started: Started) -> None:
    _, reader = started("uncheckpointed")
    group = only(reader.read())
    assert group.checkpoint_interval_seconds is None
    assert set(committed(group).values()) == {None}


def test_what_a_completed_checkpoint_holds_is_known_of_jobs_that_commit_nothing_to_kafka(started: Started) -> None:
    server, reader = started("silent")
    server.set_metrics("committedOffset", -1)
    server.set_metrics("currentOffset", 2999)
    first = only(reader.read())
    # The last checkpoint was triggered before anybody looked: what it holds nobody knows.
    assert set(committed(first).values()) == {None}
    server.set_metrics("currentOffset", 4999)
    seen_at = server.details["now"]
    server.details["now"] = seen_at + 60_000
    server.checkpoints["latest"]["completed"]["trigger_timestamp"] = seen_at + 30_000
    # It was triggered after the first look and before the second: 3,000 is surely in it, 5,000 may not be.
    assert set(committed(only(reader.read())).values()) == {3000}
    server.details["now"] = seen_at + 120_000
    server.checkpoints["latest"]["completed"]["trigger_timestamp"] = seen_at + 90_000
    assert set(committed(only(reader.read())).values()) == {5000}


def test_a_job_that_is_being_restarted_reads_what_it_read_before(started: Started) -> None:
    server, reader = started("healthy")
    only(reader.read())
    server.job["state"] = "RESTARTING"
    group = only(reader.read())
    assert (group.state, group.job) == ("RESTARTING", None)
    assert committed(group) == {0: None, 1: None, 2: None, 3: None}  # what Kafka has is reported by Kafka


def test_a_job_never_seen_running_has_no_metrics_but_its_state(started: Started) -> None:
    _, reader = started("restarting")
    group = only(reader.read())
    assert (group.state, group.offsets) == ("RESTARTING", [])


def test_of_two_jobs_of_a_name_the_one_that_runs_counts(started: Started) -> None:
    server, reader = started("healthy")
    failed = server.job | {"jid": "0" * 32, "state": "FAILED", "start-time": server.job["start-time"] + 1}
    server.answers["/v1/jobs/overview"]["jobs"].append(failed)
    assert only(reader.read()).state == "RUNNING"


def test_a_job_that_reads_something_else_is_no_group(started: Started) -> None:
    server, reader = started("healthy")
    for path, answer in server.answers.items():
        if path.endswith("/metrics"):
            answer["ids"] = [name for name in answer["ids"] if "Kafka" not in name]
    assert reader.read().groups == {}


def test_metrics_that_are_not_there_for_a_moment_are_no_end_of_the_group(started: Started) -> None:
    server, reader = started("healthy")
    only(reader.read())
    for path, answer in server.answers.items():
        if path.endswith("/metrics"):
            answer["ids"] = []
    found = reader.read()
    assert found.groups["flink-orders"].error == "external_offsets_missing"
    assert found.errors.counts == {"external_offsets_missing": 1}


def test_a_job_that_cannot_be_read_costs_only_its_own_group(started: Started) -> None:
    server, reader = started("healthy")
    server.answers["/v1/jobs/overview"]["jobs"].append(server.job | {"jid": "1" * 32, "name": "other"})
    server.answers[f"/v1/jobs/{'1' * 32}"] = 500
    found = reader.read()
    assert found.groups["flink-orders"].error is None
    assert found.groups["other"].error == "external_offsets_unreachable"


@pytest.mark.parametrize("answer", [b"<html>", b"[1, 2]", b'{"vertices": 3}', b"{}", b'{"now": "x", "plan": null}'])
def test_an_answer_that_is_none_is_malformed(started: Started, answer: bytes) -> None:
    server, reader = started("healthy")
    server.answers[f"/v1/jobs/{server.jid}"] = answer
    assert reader.read().groups["flink-orders"].error == "external_offsets_malformed"


def test_an_address_that_is_not_flink_is_reported(started: Started) -> None:
    server, reader = started("healthy")
    server.answers["/v1/jobs/overview"] = {"hello": "world"}
    with pytest.raises(OffsetSourceTrouble, match="it lists no jobs"):
        reader.read()


def test_without_the_token_it_is_refused_and_the_token_is_never_shown(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGWISE_SECRET_FLINK", "s3cr3t-token")
    server, reader = started("healthy", token="${env:LAGWISE_SECRET_FLINK}")
    server.token = "another"
    with pytest.raises(OffsetSourceTrouble) as refused:
        reader.read()
    assert refused.value.kind == "external_offsets_refused"
    assert "s3cr3t" not in str(refused.value)
    server.token = "s3cr3t-token"
    assert only(reader.read()).name == "flink-orders"


def test_connection_refused(started: Started) -> None:
    server, reader = started("healthy")
    url = str(reader._settings.url)
    del server
    gone = FlinkReader(FlinkJobs(name="jobs", url=url.rsplit(":", 1)[0] + ":9"))
    with pytest.raises(OffsetSourceTrouble) as trouble:
        gone.read()
    assert trouble.value.kind == "external_offsets_unreachable"


def test_metrics_are_asked_for_in_addresses_of_bounded_length(started: Started) -> None:
    server, reader = started("healthy")
    (source,) = (a for path, a in server.answers.items() if path.endswith("/metrics") and a["values"])
    for partition in range(4, 200):
        name = f"0.Source__kafka-orders.KafkaSourceReader.topic.orders.partition.{partition}.committedOffset"
        source["ids"].append(name)
        source["values"][name] = str(partition)
    group = only(reader.read())
    assert committed(group)[199] == 199
    assert max(len(path) for path in server.asked) < 8_000


# --- vertices ---


def test_what_vertices_did_between_two_looks(started: Started) -> None:
    server, reader = started("healthy")
    first = only(reader.read()).job
    assert first is not None
    assert [(v.name, v.parallelism) for v in first.vertices] == [
        ("Source: kafka-orders", 2),
        ("price", 2),
        ("Sink: Writer", 2),
    ]
    assert {v.busy_share for v in first.vertices} == {None}
    assert first.checkpoint_duration_seconds == 0.009
    assert (first.checkpoints_completed, first.checkpoints_failed) == (6, 2)
    server.details["now"] += 10_000
    source, price, sink = (v["metrics"] for v in server.details["vertices"])
    source["accumulated-backpressured-time"] += 12_000
    source["accumulated-idle-time"] += 8_000
    price["accumulated-busy-time"] += 19_000
    price["accumulated-idle-time"] += 1_000
    price["read-records"] += 4_120
    sink["accumulated-busy-time"] = "NaN"
    again = only(reader.read()).job
    assert again is not None
    was_source, was_price, was_sink = again.vertices
    assert (was_source.backpressured_share, was_source.records_out_per_second) == (0.6, 0.0)
    assert (was_price.busy_share, was_price.idle_share) == (0.95, 0.05)
    assert was_price.records_in_per_second == 412.0
    assert was_sink.busy_share is None


@pytest.mark.parametrize("fetched_seconds", [10, 20])
def test_times_are_of_what_flink_fetched_and_not_of_the_clock(started: Started, fetched_seconds: int) -> None:
    """Looks every 15 s, of metrics that are fetched every ten: now one fetch, now two, and at times none."""
    server, reader = started("healthy")
    reader.read()
    price = server.details["vertices"][1]["metrics"]
    server.details["now"] += 15_000
    price["accumulated-busy-time"] += 2 * 900 * fetched_seconds
    price["accumulated-idle-time"] += 2 * 100 * fetched_seconds
    price["read-records"] += 40 * fetched_seconds
    job = only(reader.read()).job
    assert job is not None
    assert (job.vertices[1].busy_share, job.vertices[1].records_in_per_second) == (0.9, 40.0)
    server.details["now"] += 15_000
    job = only(reader.read()).job
    assert job is not None
    assert (job.vertices[1].busy_share, job.vertices[1].records_in_per_second) == (None, None)


def test_restarted_counters_and_silent_subtasks_yield_no_metrics(started: Started) -> None:
    server, reader = started("healthy")
    reader.read()
    server.details["now"] += 10_000
    _, price, sink = every = [v["metrics"] for v in server.details["vertices"]]
    for metrics in every:
        metrics["accumulated-idle-time"] += 20_000
    price["read-records"] = 5
    sink["read-records"] += 10
    sink["read-records-complete"] = False
    job = only(reader.read()).job
    assert job is not None
    assert [v.records_in_per_second for v in job.vertices] == [0.0, None, None]


# --- task slots ---

OVERVIEW = "/v1/overview"


def test_task_slots_are_asked_for_once_for_all_jobs(started: Started) -> None:
    server, reader = started("healthy")
    other = "1" * 32
    server.answers["/v1/jobs/overview"]["jobs"].append(server.job | {"jid": other, "name": "other"})
    for path in [path for path in server.answers if server.jid in path]:
        server.answers[path.replace(server.jid, other)] = server.answers[path]
    found = reader.read()
    jobs = [group.job for group in found.groups.values()]
    assert len(jobs) == 2
    assert {(job.slots_total, job.slots_free) for job in jobs if job is not None} == {(3, 1)}
    assert server.asked.count(OVERVIEW) == 1


def test_a_vertex_holds_the_slots_of_the_most_parallel_one_that_it_shares_them_with(started: Started) -> None:
    server, reader = started("healthy")
    source, price, sink = server.details["vertices"]
    price["parallelism"] = 5
    job = only(reader.read()).job
    assert job is not None
    assert [v.slots_held for v in job.vertices] == [5, 5, 5]
    source["slotSharingGroupId"] = "another"
    job = only(reader.read()).job
    assert job is not None
    assert [v.slots_held for v in job.vertices] == [2, 5, 5]
    for vertex in (source, price, sink):  # as of an older Flink
        del vertex["slotSharingGroupId"]
    job = only(reader.read()).job
    assert job is not None
    assert [v.slots_held for v in job.vertices] == [5, 5, 5]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (500, "unreachable"),
        (404, "missing"),
        (b"<html>", "malformed"),
        (b"[1]", "malformed"),
        (b"{}", "malformed"),
        (b'{"slots-total": "3", "slots-available": 1}', "malformed"),
        (b'{"slots-total": 1, "slots-available": 3}', "malformed"),
        (b'{"slots-total": 4294967296, "slots-available": 3}', "malformed"),
    ],
)
def test_an_overview_without_slots_costs_only_the_slots(started: Started, answer: object, kind: str) -> None:
    server, reader = started("healthy")
    server.answers[OVERVIEW] = answer
    found = reader.read()
    group = found.groups["flink-orders"]
    assert (group.error, committed(group)) == (None, {0: 5000, 1: 5000, 2: 5000, 3: 5000})
    assert group.job is not None
    assert (group.job.slots_total, group.job.slots_free) == (None, None)
    assert found.errors.counts == {f"external_offsets_{kind}": 1}
    assert "overview" in found.errors.example(f"external_offsets_{kind}")


def test_an_overview_that_is_never_answered_costs_only_the_slots(started: Started) -> None:
    """It is not waited for until the whole source is too late."""
    server, reader = started("healthy")
    server.stuck.add(OVERVIEW)
    sources, errors = OffsetSources([reader._settings.model_copy(update={"timeout_seconds": 2.0})]), ErrorTally()
    sources.begin()
    (group,) = sources.finish(lambda group: True, errors).groups
    assert (group.source, group.error, group.job is not None) == ("jobs", None, True)
    assert errors.counts == {"external_offsets_timeout": 1}


def test_without_a_running_job_slots_are_not_queried(started: Started) -> None:
    server, reader = started("restarting")
    only(reader.read())
    assert OVERVIEW not in server.asked
