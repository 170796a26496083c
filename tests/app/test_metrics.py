"""What Prometheus is served: read back by the parsers of its Python client, and compared with the lake."""

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.samples import Sample

from lagwise.config import Config
from lagwise.config.model import AnalysisSettings
from lagwise.domain.staleness import allowed_age_seconds
from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.raw import SAMPLES, WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_app.server.metrics.documents import GRACE_SECONDS, MetricsWriter, current, keep_current
from lagwise_app.server.metrics.exposition import Metric, text_of
from lagwise_app.server.metrics.name_sets import BURROW_CODES, EXPORTERS
from lagwise_app.server.metrics.own_metrics import OWN_METRICS
from tests.app.judged import HOSTILE, append
from tests.dashboard.lakes import Scene, write_to
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_NAMES, Story
from tests.docs.test_words import BURROW_WORDS
from tests.lake_rows import overwrite, row

pytestmark = pytest.mark.thorough

#: Of whole seconds, so that times are numbers which both sides write alike.
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
STRANGE = (*HOSTILE_NAMES, HOSTILE, 'quo"te', "back\\slash", "\\n is no line break", "carriage\rreturn", "", " ")
STORIES = (
    *GROUPS_OF_THE_DEMO,
    *(Story(name, Status.LAGGING, "flat", "It lags.", topic=name or "t", lag=7) for name in STRANGE),
)
#: Seconds for which rows are fresh in these tests.
ALLOWED = 300.0


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = write_to(tmp_path_factory.mktemp("metrics"), Scene(NOW, stories=STORIES, hours=0.1))
    group = STORIES[0]
    capacity = {"verdict": "tight", "demand_per_second": 80.5, "capacity_low_per_second": 100.0, "enough_until": NOW}
    append(made, CAPACITY, row(CAPACITY, cluster=group.cluster, group=group.group, topic=group.topic, **capacity))
    return made


@pytest.fixture(scope="module")
def writer(lake: Lake) -> MetricsWriter:
    """With the metrics of every exporter."""
    return written(lake, name_sets=tuple(EXPORTERS))


def written(lake: Lake, now: datetime = NOW, clusters: Iterable[dict[str, Any]] = (), **settings: Any) -> MetricsWriter:
    writer = MetricsWriter(lake, configured(*clusters, **settings))
    writer.refresh(now)
    return writer


def configured(*clusters: dict[str, Any], **settings: Any) -> Config:
    settings = {"stale_after_seconds": ALLOWED, **settings}
    return Config.model_validate({"clusters": clusters, "server": {"metrics": settings}})


def text(writer: MetricsWriter, exporter: str = "", cluster: str = "") -> str:
    assert writer.documents is not None
    return writer.documents.by_key[exporter, cluster].text.decode()


@cache
def samples(text: str) -> list[Sample]:
    """All samples, which both parsers must read alike."""
    found = [s for family in openmetrics_parser.text_string_to_metric_families(text) for s in family.samples]
    assert found == [s for family in parser.text_string_to_metric_families(text) for s in family.samples]
    return found


def values(text: str, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Values of one metric by its labels, which are these and no others."""
    found = [sample for sample in samples(text) if sample.name == name]
    assert all(set(sample.labels) <= set(labels) for sample in found)
    by_labels = {tuple(sample.labels.get(label, "") for label in labels): sample.value for sample in found}
    assert len(by_labels) == len(found), "a series is written twice"
    return by_labels


def rows(lake: Lake, table: Any) -> list[dict[str, Any]]:
    return [dict(one) for one in lake.read(table).to_pylist()]


def known(found: Iterable[dict[str, Any]], column: str, *keys: str) -> dict[tuple[str, ...], float]:
    """What the lake says: rows in which the column is known."""
    return {tuple(str(r[key]) for key in keys): seconds(r[column]) for r in found if r[column] is not None}


def seconds(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)


GROUP_COLUMNS = {
    "lag_records": "lag",
    "lag_seconds": "lag_seconds",
    "time_to_loss_seconds": "seconds_to_loss",
    "time_to_catch_up_seconds": "seconds_to_catch_up",
    "lost_records": "records_lost",
    "written_records_per_second": "produce_rate_per_second",
    "read_records_per_second": "consume_rate_per_second",
    "members": "members",
    "idle_members": "idle_members",
    "partitions": "partitions",
    "status_since_timestamp_seconds": "since",
}


@pytest.mark.parametrize(("name", "column"), GROUP_COLUMNS.items())
def test_every_group_has_what_is_known_of_it_under_its_own_name(
    writer: MetricsWriter, lake: Lake, name: str, column: str
) -> None:
    expected = known(rows(lake, GROUP_STATUS), column, "cluster", "group")
    assert expected
    assert values(text(writer), f"lagwise_group_{name}", "cluster", "group") == pytest.approx(expected)


def test_the_status_is_a_label(writer: MetricsWriter, lake: Lake) -> None:
    expected = {(r["cluster"], r["group"], r["status"]): 1.0 for r in rows(lake, GROUP_STATUS)}
    assert values(text(writer), "lagwise_group_status", "cluster", "group", "status") == expected


@pytest.mark.parametrize(("name", "column"), [("lag_records", "lag"), ("lag_seconds", "lag_seconds")])
def test_every_partition_that_a_group_reads_has_its_lag(
    writer: MetricsWriter, lake: Lake, name: str, column: str
) -> None:
    labels = ("cluster", "group", "topic", "partition")
    found = values(text(writer), f"lagwise_partition_{name}", *labels)
    assert found == pytest.approx(known(rows(lake, PARTITION_STATUS), column, *labels))


def test_capacity_is_told_by_topic(writer: MetricsWriter) -> None:
    labels, of = ("cluster", "group", "topic"), (STORIES[0].cluster, STORIES[0].group, STORIES[0].topic)
    found = text(writer)
    assert values(found, "lagwise_group_topic_capacity_verdict", *labels, "verdict") == {(*of, "tight"): 1.0}
    assert values(found, "lagwise_group_topic_demand_records_per_second", *labels) == {of: 80.5}
    assert values(found, "lagwise_group_topic_capacity_records_per_second", *labels) == {of: 100.0}
    assert values(found, "lagwise_group_topic_enough_until_timestamp_seconds", *labels) == {of: NOW.timestamp()}


def test_freshness_and_the_last_round(writer: MetricsWriter, lake: Lake) -> None:
    found = text(writer)
    newest = max(rows(lake, TICKS), key=lambda one: one["finished_at"])
    assert values(found, "lagwise_analysis_timestamp_seconds") == {(): newest["finished_at"].timestamp()}
    assert values(found, "lagwise_analysis_duration_seconds") == {(): pytest.approx(newest["wall_seconds"])}
    sampled = (NOW - timedelta(seconds=6)).timestamp()
    for name in ("judged", "collection"):
        assert values(found, f"lagwise_{name}_timestamp_seconds", "cluster") == {
            ("prod",): sampled,
            ("staging",): sampled,
        }
    assert values(found, "lagwise_collection_errors", "cluster") == {("prod",): 0, ("staging",): 0}
    assert values(found, "lagwise_lake_readable") == {(): 1}


def test_errors_of_a_collection_are_counted(tmp_path: Path) -> None:
    found = [{"kind": "timeout", "count": 3, "example": "x"}, {"kind": "denied", "count": 2, "example": "y"}]
    lake = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO, hours=0.1, errors={"prod": found}))
    errors = values(text(written(lake)), "lagwise_collection_errors", "cluster")
    assert errors == {("prod",): 5, ("staging",): 0}


def test_only_what_is_a_number_is_written() -> None:
    table = pa.table({"g": list("abcdefg"), "v": [1.5, None, float("nan"), float("inf"), 1e-7, 1e21, -0.25]})
    found = values(text_of([Metric("m", "Help.", "t", {"g": "g"}, "v")], {"t": table}).decode() + "# EOF\n", "m", "g")
    assert found == {("a",): 1.5, ("e",): 1e-7, ("f",): 1e21, ("g",): -0.25}


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), unique=True, max_size=8))
def test_any_name_is_read_back_as_it_is(names: list[str]) -> None:
    table = pa.table({"g": pa.array(names, pa.string()), "v": pa.array(range(len(names)), pa.int64())})
    found = values(text_of([Metric("m", "Help.", "t", {"g": "g"}, "v")], {"t": table}).decode() + "# EOF\n", "m", "g")
    assert found == {(name,): number for number, name in enumerate(names)}


def test_the_character_that_ends_a_text_for_prometheus_is_replaced() -> None:
    table = pa.table({"g": ["a\0b", None], "v": [1, 2]})
    found = text_of([Metric("m", "Help.", "t", {"g": "g"}, "v")], {"t": table})
    assert found.splitlines()[2:] == ['m{g="a\ufffdb"} 1'.encode(), b'm{g=""} 2']


def test_a_part_of_a_column_is_written_as_that_part() -> None:
    table = pa.table({"g": list("abcdef"), "v": [1, 2, None, 4, 5, 6]}).slice(1, 4)
    found = text_of([Metric("m", "Help.", "t", {"g": "g"}, "v")], {"t": table})
    assert found.splitlines()[2:] == [b'm{g="b"} 2', b'm{g="d"} 4', b'm{g="e"} 5']


def test_help_texts_are_sentences_that_need_no_escaping() -> None:
    for metric in (*OWN_METRICS, *(m for exporter in EXPORTERS.values() for m in exporter.metrics)):
        assert not set(metric.help) & set('\\"\n')
        assert metric.help.endswith(".") and len(metric.help) > 10, metric.name


#: Names and labels as the exporters' own sources declare them, of what is served.
DECLARED = {
    "kafka_exporter": """
        kafka_topic_partitions topic
        kafka_topic_partition_current_offset topic partition
        kafka_topic_partition_oldest_offset topic partition
        kafka_topic_partition_leader topic partition
        kafka_topic_partition_leader_is_preferred topic partition
        kafka_topic_partition_replicas topic partition
        kafka_topic_partition_in_sync_replica topic partition
        kafka_topic_partition_under_replicated_partition topic partition
        kafka_consumergroup_current_offset consumergroup topic partition
        kafka_consumergroup_lag consumergroup topic partition
        kafka_consumergroup_current_offset_sum consumergroup topic
        kafka_consumergroup_lag_sum consumergroup topic
        kafka_consumergroup_members consumergroup
    """,
    "kafka_lag_exporter": """
        kafka_partition_latest_offset cluster_name topic partition
        kafka_partition_earliest_offset cluster_name topic partition
        kafka_consumergroup_group_offset cluster_name group topic partition member_host consumer_id client_id
        kafka_consumergroup_group_lag cluster_name group topic partition member_host consumer_id client_id
        kafka_consumergroup_group_lag_seconds cluster_name group topic partition member_host consumer_id client_id
        kafka_consumergroup_group_max_lag cluster_name group
        kafka_consumergroup_group_max_lag_seconds cluster_name group
        kafka_consumergroup_group_sum_lag cluster_name group
        kafka_consumergroup_group_topic_sum_lag cluster_name group topic
        kafka_consumergroup_poll_time_ms cluster_name
    """,
    "kminion": """
        kminion_exporter_up version
        kminion_kafka_topic_partition_high_water_mark topic_name partition_id
        kminion_kafka_topic_partition_low_water_mark topic_name partition_id
        kminion_kafka_topic_high_water_mark_sum topic_name
        kminion_kafka_topic_low_water_mark_sum topic_name
        kminion_kafka_consumer_group_info group_id protocol protocol_type state coordinator_id
        kminion_kafka_consumer_group_members group_id
        kminion_kafka_consumer_group_empty_members group_id
        kminion_kafka_consumer_group_topic_members group_id topic_name
        kminion_kafka_consumer_group_topic_assigned_partitions group_id topic_name
        kminion_kafka_consumer_group_topic_offset_sum group_id topic_name
        kminion_kafka_consumer_group_topic_lag group_id topic_name
        kminion_kafka_consumer_group_topic_partition_lag group_id topic_name partition_id
    """,
    "burrow": """
        burrow_kafka_consumer_lag_total cluster consumer_group
        burrow_kafka_consumer_status cluster consumer_group
        burrow_kafka_consumer_current_offset cluster consumer_group topic partition
        burrow_kafka_consumer_partition_lag cluster consumer_group topic partition
        burrow_kafka_topic_partition_status cluster consumer_group topic partition
        burrow_kafka_topic_partition_offset cluster topic partition
    """,
}


class TestExporters:
    """Names and labels of others, as their sources declare them."""

    @pytest.mark.parametrize("exporter", EXPORTERS)
    def test_names_and_labels_are_theirs(self, writer: MetricsWriter, exporter: Any) -> None:
        declared = dict(line.split(maxsplit=1) for line in DECLARED[exporter].strip().splitlines())
        cluster = "" if EXPORTERS[exporter].names_cluster else "prod"
        found: dict[str, set[str]] = {}
        for sample in samples(text(writer, exporter, cluster)):
            found.setdefault(sample.name, set()).update(sample.labels)
        assert found == {name: set(labels.split()) for name, labels in declared.items()}

    @pytest.mark.parametrize(
        ("exporter", "name", "column", "labels"),
        [
            ("kafka_exporter", "kafka_consumergroup_lag", "lag", ("consumergroup", "topic", "partition")),
            (
                "kafka_exporter",
                "kafka_consumergroup_current_offset",
                "committed",
                ("consumergroup", "topic", "partition"),
            ),
            (
                "kminion",
                "kminion_kafka_consumer_group_topic_partition_lag",
                "lag",
                ("group_id", "topic_name", "partition_id"),
            ),
        ],
    )
    def test_a_cluster_has_its_own_partitions(
        self, writer: MetricsWriter, lake: Lake, exporter: str, name: str, column: str, labels: tuple[str, ...]
    ) -> None:
        for cluster in ("prod", "staging"):
            of_cluster = [r for r in rows(lake, PARTITION_STATUS) if r["cluster"] == cluster]
            expected = known(of_cluster, column, "group", "topic", "partition")
            assert values(text(writer, exporter, cluster), name, *labels) == expected

    def test_sums_are_those_of_the_partitions(self, writer: MetricsWriter, lake: Lake) -> None:
        sums: dict[tuple[str, ...], float] = {}
        for r in rows(lake, PARTITION_STATUS):
            if r["lag"] is not None:
                key = (r["cluster"], r["group"])
                sums[key] = sums.get(key, 0) + r["lag"]
        labels = ("cluster_name", "group")
        assert values(text(writer, "kafka_lag_exporter"), "kafka_consumergroup_group_sum_lag", *labels) == sums
        of_burrow = values(text(writer, "burrow"), "burrow_kafka_consumer_lag_total", "cluster", "consumer_group")
        unknown = {(r["cluster"], r["group"]) for r in rows(lake, GROUP_STATUS) if r["status"] == Status.UNKNOWN}
        assert of_burrow == {key: value for key, value in sums.items() if key not in unknown}

    def test_owners_are_labels_of_the_lag_exporter(self, writer: MetricsWriter, lake: Lake) -> None:
        expected = {
            (
                *(r["group"], r["topic"], str(r["partition"])),
                *(r[column] or "unknown" for column in ("host", "owner", "client_id")),
            )
            for r in rows(lake, PARTITION_STATUS)
            if r["lag"] is not None
        }
        labels = ("group", "topic", "partition", "member_host", "consumer_id", "client_id")
        found = values(text(writer, "kafka_lag_exporter"), "kafka_consumergroup_group_lag", *labels, "cluster_name")
        assert {key[:-1] for key in found} == expected
        assert any(key[3] == "unknown" for key in found) and any(key[3].startswith("/10.") for key in found)

    def test_hosts_of_kafka_have_the_slash_that_its_java_client_writes(self, tmp_path: Path) -> None:
        lake = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO[:3], hours=0.1))
        without = [r | {"host": r["host"] and r["host"].removeprefix("/")} for r in rows(lake, PARTITION_STATUS)]
        overwrite(lake, PARTITION_STATUS, without)
        name, labels = "kafka_consumergroup_group_offset", ("member_host", "group", "topic", "partition")

        def hosts() -> set[str]:
            found = text(written(lake, name_sets=("kafka_lag_exporter",)), "kafka_lag_exporter")
            return {key[0] for key in values(found, name, *labels, "consumer_id", "client_id", "cluster_name")} - {
                "unknown"
            }

        assert hosts() == {f"/{r['host']}" for r in without if r["host"]}
        lake.replace(SAMPLES, SAMPLES.from_rows([r | {"system": "rocketmq"} for r in rows(lake, SAMPLES)]))
        assert hosts() == {r["host"] for r in without if r["host"]}

    def test_what_a_group_has_left_has_its_committed_offset_and_no_lag(self, tmp_path: Path) -> None:
        (story,) = (one for one in GROUPS_OF_THE_DEMO if one.status is Status.GHOST)
        lake = write_to(tmp_path, Scene(NOW, stories=(story,), hours=0.1))
        overwrite(lake, PARTITION_STATUS, [r | {"committed": 5} for r in rows(lake, PARTITION_STATUS)])
        writer, labels = written(lake, name_sets=("kafka_exporter",)), ("consumergroup", "topic", "partition")
        of_exporter = text(writer, "kafka_exporter", story.cluster)
        expected = {(story.group, story.topic, str(partition)): 5 for partition in range(story.partitions)}
        assert values(of_exporter, "kafka_consumergroup_current_offset", *labels) == expected
        names = {s.name for s in samples(of_exporter)} | {s.name for s in samples(text(writer))}
        assert not {name for name in names if "_lag" in name}

    def test_a_sum_without_a_commit_that_should_be_known_is_not_served(self, tmp_path: Path) -> None:
        story = Story("g", Status.OK, "flat", "It is ok.", topic="t", partitions=3)
        lake = write_to(tmp_path, Scene(NOW, stories=(story,), hours=0.1))
        first, second, third = rows(lake, PARTITION_STATUS)

        def sums(**values_of_third: Any) -> list[dict[tuple[str, ...], float]]:
            overwrite(
                lake, PARTITION_STATUS, [first, second, third | {"lag": None, "lag_seconds": None} | values_of_third]
            )
            writer = written(lake, name_sets=("kafka_exporter", "kafka_lag_exporter"))
            labels, of_lag_exporter = ("consumergroup", "topic"), text(writer, "kafka_lag_exporter")
            return [
                values(text(writer, "kafka_exporter", "prod"), "kafka_consumergroup_current_offset_sum", *labels),
                values(text(writer, "kafka_exporter", "prod"), "kafka_consumergroup_lag_sum", *labels),
                values(of_lag_exporter, "kafka_consumergroup_group_sum_lag", "cluster_name", "group"),
            ]

        offset, lag = first["committed"] + second["committed"], first["lag"] + second["lag"]
        assert sums(status="unknown", reason="unreadable", committed=None) == [{}, {}, {}]
        assert sums(status="unknown", reason="rebalancing", committed=7) == [{("g", "t"): offset + 7}, {}, {}]
        of_two = [{("g", "t"): offset}, {("g", "t"): lag}, {("prod", "g"): lag}]
        assert sums(status="unknown", reason="no_commit", committed=None) == of_two
        assert sums(status="unknown", reason="not_committing", committed=None) == of_two

    def test_kminion_is_up_while_the_verdicts_on_its_cluster_are_fresh(self, tmp_path: Path) -> None:
        lake = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO, hours=0.1))
        stale = [r | {"as_of": NOW - timedelta(hours=1)} for r in rows(lake, GROUP_STATUS) if r["cluster"] == "staging"]
        overwrite(lake, GROUP_STATUS, [r for r in rows(lake, GROUP_STATUS) if r["cluster"] == "prod"] + stale)
        writer = written(lake, name_sets=("kminion",))

        def up(cluster: str) -> list[float]:
            return [*values(text(writer, "kminion", cluster), "kminion_exporter_up", "version").values()]

        assert (up("prod"), up("staging")) == ([1], [0])
        append(lake, TICKS, row(TICKS, started_at=NOW, finished_at=NOW))
        max((Path(lake.location(TICKS)) / "_delta_log").glob("*.json")).write_bytes(b"damaged")
        writer.refresh(NOW)
        assert up("prod") == [0]
        writer.refresh(NOW + timedelta(seconds=ALLOWED))
        assert up("prod") == [0]

    def test_a_cluster_without_judged_groups_has_its_topics(self, tmp_path: Path) -> None:
        lake = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO, hours=0.1))
        overwrite(lake, GROUP_STATUS, [r for r in rows(lake, GROUP_STATUS) if r["cluster"] == "prod"])
        writer = written(lake, clusters=[{"name": "new", "bootstrap": "h:1"}], name_sets=("kafka_exporter",))
        assert values(text(writer, "kafka_exporter", "staging"), "kafka_topic_partitions", "topic")
        assert samples(text(writer, "kafka_exporter", "new")) == []

    def test_a_group_s_state_is_kminion_s_info(self, writer: MetricsWriter, lake: Lake) -> None:
        labels = ("group_id", "state", "protocol_type", "protocol", "coordinator_id")
        found = values(text(writer, "kminion", "prod"), "kminion_kafka_consumer_group_info", *labels)
        states = {r["group"]: r["state"] for r in rows(lake, GROUP_STATUS) if r["cluster"] == "prod"}
        assert {key[:2]: value for key, value in found.items()} == {
            (group, state): float(state == "Stable") for group, state in states.items()
        }
        assert {key[4] for key in found} == {"2"} and {key[2] for key in found} == {"consumer"}
        assert {"range", "uniform", ""} == {key[3] for key in found}

    def test_replicas_and_leaders(self, tmp_path: Path) -> None:
        """The second of three partitions has a replica that is not in sync, the third no leader; of a fourth, as on
        RocketMQ, neither is known."""
        story = Story("g", Status.OK, "flat", "It is ok.", topic="t", partitions=3, out_of_sync=1, without_leader=2)
        lake = write_to(tmp_path, Scene(NOW, stories=(story,), hours=0.1))
        newest = max(rows(lake, WATERMARKS), key=lambda one: one["sampled_at"])
        same = {key: newest[key] for key in ("sample_id", "cluster", "sampled_at", "topic")}
        append(lake, WATERMARKS, row(WATERMARKS, **same, partition=3, high_watermark=5))
        found = text(written(lake, name_sets=("kafka_exporter",)), "kafka_exporter", "prod")

        def by_partition(name: str) -> dict[tuple[str, ...], float]:
            of_topic = values(found, f"kafka_topic_partition_{name}", "topic", "partition")
            return {key[1:]: value for key, value in of_topic.items()}

        assert by_partition("current_offset").keys() == {("0",), ("1",), ("2",), ("3",)}
        assert by_partition("leader") == {("0",): 1, ("1",): 2}
        assert by_partition("leader_is_preferred") == {("0",): 1, ("1",): 1, ("2",): 0}
        assert by_partition("replicas") == {("0",): 3, ("1",): 3, ("2",): 3}
        assert by_partition("in_sync_replica") == {("0",): 3, ("1",): 2, ("2",): 3}
        assert by_partition("under_replicated_partition") == {("0",): 0, ("1",): 1, ("2",): 0}

    def test_a_topic_of_which_a_partition_is_unreadable_has_no_sum(self, tmp_path: Path) -> None:
        lake = write_to(tmp_path, Scene(NOW, stories=(GROUPS_OF_THE_DEMO[0],), hours=0.1))
        topic = GROUPS_OF_THE_DEMO[0].topic
        labels = ("topic_name",)
        found = text(written(lake, name_sets=("kminion",)), "kminion", "prod")
        newest = max(rows(lake, WATERMARKS), key=lambda one: one["sampled_at"])
        of_newest = [r for r in rows(lake, WATERMARKS) if r["sample_id"] == newest["sample_id"]]
        expected = {(topic,): sum(r["high_watermark"] for r in of_newest)}
        assert values(found, "kminion_kafka_topic_high_water_mark_sum", *labels) == expected
        same = {key: newest[key] for key in ("sample_id", "cluster", "sampled_at", "topic")}
        append(lake, WATERMARKS, row(WATERMARKS, **same, partition=99, log_start=None, error="timeout"))
        found = text(written(lake, name_sets=("kminion",)), "kminion", "prod")
        assert values(found, "kminion_kafka_topic_high_water_mark_sum", *labels) == {}

    def test_burrow_s_codes_are_its_words(self) -> None:
        words = ("NOTFOUND", "OK", "WARN", "ERR", "STOP", "STALL", "REWIND")
        codes = {status: words.index(word) for status, word in BURROW_WORDS.items()}
        assert codes == {**BURROW_CODES, Status.UNKNOWN: 0}

    def test_burrow_calls_a_group_nothing_worse_than_err(self, writer: MetricsWriter, lake: Lake) -> None:
        found = values(text(writer, "burrow"), "burrow_kafka_consumer_status", "cluster", "consumer_group")
        expected = {
            (r["cluster"], r["group"]): min(3, BURROW_CODES[Status(r["status"])])
            for r in rows(lake, GROUP_STATUS)
            if r["status"] != Status.UNKNOWN
        }
        assert found == expected
        of_partitions = values(
            text(writer, "burrow"),
            "burrow_kafka_topic_partition_status",
            *("cluster", "consumer_group", "topic", "partition"),
        )
        assert set(of_partitions.values()) == {1, 2, 3, 4, 5, 6}

    def test_they_are_served_only_where_wanted(self, lake: Lake) -> None:
        documents = written(lake, name_sets=("kminion",)).documents
        assert documents is not None
        assert set(documents.by_key) == {("", ""), ("kminion", "prod"), ("kminion", "staging")}


class TestLimits:
    """High cardinality is limited, and the limit says what it left out."""

    LEFT_OUT = ("lagwise_metrics_left_out", "kind", "reason")

    def test_groups_in_trouble_stay(self, lake: Lake) -> None:
        found = text(written(lake, max_groups=3))
        groups = values(found, "lagwise_group_status", "cluster", "group", "status")
        assert {key[2] for key in groups} == {"losing_data", "at_risk", "stopped"}
        assert values(found, *self.LEFT_OUT)["group", "limit"] == len(STORIES) - 3

    def test_partitions_of_a_group_are_there_or_not_together(self, lake: Lake) -> None:
        total = lake.read(PARTITION_STATUS).num_rows
        found = text(written(lake, max_partitions=40))
        of_lake: dict[tuple[str, str], int] = {}
        for r in rows(lake, PARTITION_STATUS):
            if r["lag"] is not None and r["status"] != Status.GHOST:
                of_lake[r["cluster"], r["group"]] = of_lake.get((r["cluster"], r["group"]), 0) + 1
        shown: dict[tuple[str, ...], int] = {}
        for key in values(found, "lagwise_partition_lag_records", "cluster", "group", "topic", "partition"):
            shown[key[:2]] = shown.get(key[:2], 0) + 1
        assert 0 < sum(shown.values()) <= 40
        assert all(of_lake[key[0], key[1]] == count for key, count in shown.items())
        left_out = values(found, *self.LEFT_OUT)["group_partition", "limit"]
        assert total - 40 <= left_out < total
        assert len(values(found, "lagwise_group_status", "cluster", "group", "status")) == len(STORIES)

    def test_none_by_partition(self, lake: Lake) -> None:
        found = text(written(lake, max_partitions=0))
        assert not [s for s in samples(found) if s.name.startswith("lagwise_partition_")]

    @pytest.mark.parametrize("kind", ["group_partition", "topic_partition"])
    def test_what_is_switched_off_is_not_left_out(self, lake: Lake, kind: str) -> None:
        found = text(written(lake, max_partitions=0, name_sets=("kafka_exporter",)))
        assert values(found, *self.LEFT_OUT)[kind, "limit"] == 0

    def test_after_a_group_that_does_not_fit_none_has_partitions(self, tmp_path: Path) -> None:
        stories = [
            Story(name, status, "flat", "So it is.", topic=name, partitions=partitions, lag=7)
            for name, status, partitions in (
                ("worst", Status.LOSING_DATA, 2), ("large", Status.STOPPED, 9), ("healthy", Status.OK, 2),
            )
        ]  # fmt: skip
        lake = write_to(tmp_path, Scene(NOW, stories=tuple(stories), hours=0.1))
        found = text(written(lake, max_partitions=5))
        labels = ("group", "cluster", "topic", "partition")
        assert {key[0] for key in values(found, "lagwise_partition_lag_records", *labels)} == {"worst"}
        assert values(found, *self.LEFT_OUT)["group_partition", "limit"] == 11

    def test_partitions_of_a_topic_are_there_or_not_together(self, lake: Lake) -> None:
        labels = ("cluster_name", "topic", "partition")

        def shown(**settings: Any) -> dict[tuple[str, ...], int]:
            of_topic: dict[tuple[str, ...], int] = {}
            found = text(written(lake, name_sets=("kafka_lag_exporter",), **settings), "kafka_lag_exporter")
            for key in values(found, "kafka_partition_latest_offset", *labels):
                of_topic[key[:2]] = of_topic.get(key[:2], 0) + 1
            return of_topic

        everything = shown()
        for limit in range(1, 40):
            some = shown(max_partitions=limit)
            assert some.items() <= everything.items()
            assert sum(some.values()) <= limit
        assert some

    def test_partitions_of_topics_too(self, lake: Lake) -> None:
        writer = written(lake, max_partitions=40, name_sets=("kafka_lag_exporter",))
        found = values(text(writer, "kafka_lag_exporter"), "kafka_partition_latest_offset", "cluster_name", "topic",
                       "partition")  # fmt: skip
        left_out = values(text(writer), *self.LEFT_OUT)["topic_partition", "limit"]
        everything = written(lake, name_sets=("kafka_lag_exporter",))
        assert 0 < len(found) <= 40
        assert len(found) + left_out == text(everything, "kafka_lag_exporter").count("\nkafka_partition_latest_offset{")

    def test_groups_that_are_not_selected_are_not_left_out(self, lake: Lake) -> None:
        found = text(written(lake, groups={"include": ["checkout", "smoke-.*"]}))
        assert {key[1] for key in values(found, "lagwise_group_status", "cluster", "group", "status")} == {
            "checkout",
            "smoke-test",
        }
        assert set(values(found, *self.LEFT_OUT).values()) == {0}


class TestStale:
    """Old numbers do not pass for today's."""

    def test_a_group_whose_verdict_is_old_has_no_metrics(self, lake: Lake) -> None:
        found = text(written(lake, NOW + timedelta(seconds=ALLOWED)))
        assert not [s for s in samples(found) if s.name.startswith(("lagwise_group_", "lagwise_partition_"))]
        assert values(found, *TestLimits.LEFT_OUT)["group", "stale"] == len(STORIES)
        judged = values(found, "lagwise_judged_timestamp_seconds", "cluster")
        assert judged["prod",] == (NOW - timedelta(seconds=6)).timestamp(), "how old it is remains to be seen"

    def test_without_anything_new_the_document_changes_when_its_rows_become_stale(self, lake: Lake) -> None:
        writer = written(lake, name_sets=("kafka_exporter",))
        fresh = writer.documents
        assert fresh is not None
        assert fresh.fresh_until == NOW + timedelta(seconds=ALLOWED - 6)
        writer.refresh(fresh.fresh_until - timedelta(milliseconds=1))
        assert writer.documents is fresh, "nothing is new, and nothing is stale"
        writer.refresh(fresh.fresh_until)
        assert "lagwise_group_" not in text(writer)
        assert samples(text(writer, "kafka_exporter", "prod")) == []

    def test_the_last_collection_becomes_stale_but_its_time_stays(self, lake: Lake) -> None:
        def collected(now: datetime) -> set[str]:
            writer = written(lake, now, name_sets=("kafka_lag_exporter",))
            found = [*samples(text(writer)), *samples(text(writer, "kafka_lag_exporter"))]
            return {s.name for s in found if "collection" in s.name or "poll" in s.name}

        only_the_time = {"lagwise_collection_timestamp_seconds"}
        assert collected(NOW) == only_the_time | {
            "lagwise_collection_duration_seconds",
            "lagwise_collection_errors",
            "kafka_consumergroup_poll_time_ms",
        }
        assert collected(NOW + timedelta(seconds=ALLOWED)) == only_the_time

    def test_what_is_seldom_sampled_becomes_stale_later(self, tmp_path: Path) -> None:
        lake = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO, hours=0.1))
        seldom = [r | {"interval_seconds": 3600.0} if r["cluster"] == "staging" else r for r in rows(lake, SAMPLES)]
        lake.replace(SAMPLES, SAMPLES.from_rows(seldom))
        writer = written(lake, NOW + timedelta(hours=2), name_sets=("kafka_exporter",))
        found = text(writer)
        assert {key[0] for key in values(found, "lagwise_group_partitions", "cluster", "group")} == {"staging"}
        assert values(found, "lagwise_stale_after_seconds", "cluster") == {
            ("prod",): ALLOWED,
            ("staging",): allowed_age_seconds(3600, AnalysisSettings().interval_seconds),
        }
        assert values(text(writer, "kafka_exporter", "staging"), "kafka_topic_partitions", "topic")
        assert not values(text(writer, "kafka_exporter", "prod"), "kafka_topic_partitions", "topic")
        documents = writer.documents
        assert documents is not None
        assert documents.fresh_until > NOW + timedelta(hours=3) - timedelta(seconds=6)

    def test_the_settings_say_how_often_a_cluster_without_samples_is_sampled(self, lake: Lake) -> None:
        clusters = [{"name": "new", "bootstrap": "h:1", "interval_seconds": 600}]
        found = values(text(written(lake, clusters=clusters)), "lagwise_stale_after_seconds", "cluster")
        assert found == {("new",): allowed_age_seconds(600, AnalysisSettings().interval_seconds)}

    def test_the_clusters_of_the_settings_are_watched_and_no_others(self, lake: Lake) -> None:
        """A rule asks for clusters that are watched and never judged, and leaves out what was removed."""
        name, label = "lagwise_cluster_watched", "cluster"
        clusters = [{"name": name, "bootstrap": "h:1"} for name in ("prod", "new")]
        found = text(written(lake, clusters=clusters))
        assert values(found, name, label) == {("prod",): 1, ("new",): 1}
        assert values(found, "lagwise_judged_timestamp_seconds", label).keys() == {("prod",), ("staging",)}
        assert values(text(written(lake)), name, label) == {("prod",): 1, ("staging",): 1}

    def test_a_cluster_without_groups_is_judged_as_well(self, tmp_path: Path) -> None:
        lake = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO[:1], hours=0.1))
        progress = dict.fromkeys(("read_until", "finished_until", "hours_until", "observed_until"), NOW)
        of_round = [{"cluster": "quiet", **progress}, {"cluster": "prod", **progress}]
        append(lake, TICKS, row(TICKS, started_at=NOW, finished_at=NOW, progress=of_round))
        assert values(text(written(lake)), "lagwise_judged_timestamp_seconds", "cluster") == {
            ("quiet",): NOW.timestamp(),
            ("prod",): (NOW - timedelta(seconds=6)).timestamp(),
        }

    def test_one_cluster_may_be_stale_alone(self, lake: Lake, tmp_path: Path) -> None:
        other = write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO, hours=0.1))
        old = [
            r | {"as_of": NOW - timedelta(hours=1)} if r["cluster"] == "staging" else r
            for r in rows(other, GROUP_STATUS)
        ]
        overwrite(other, GROUP_STATUS, old)
        clusters = {key[0] for key in values(text(written(other)), "lagwise_group_partitions", "cluster", "group")}
        assert clusters == {"prod"}

    def test_a_document_that_nobody_renews_is_not_served(self, lake: Lake) -> None:
        writer = written(lake)
        assert writer.documents is not None
        end = writer.documents.fresh_until + timedelta(seconds=GRACE_SECONDS)
        assert current(writer, end) is writer.documents
        assert current(writer, end + timedelta(milliseconds=1)) is None

    def test_before_the_first_reading_nothing_is_served(self, tmp_path: Path) -> None:
        assert current(MetricsWriter(Lake(str(tmp_path / "none")), configured()), NOW) is None


class TestReading:
    """The lake is read when it has something new."""

    @pytest.fixture
    def own(self, tmp_path: Path) -> Lake:
        return write_to(tmp_path, Scene(NOW, stories=GROUPS_OF_THE_DEMO[:3], hours=0.1))

    def test_verdicts_are_read_before_the_round_is_finished(self, own: Lake) -> None:
        """Groups are written right after their partitions, and the round does more after that."""
        writer = written(own)
        before = writer.documents
        of_partitions = [r for r in rows(own, PARTITION_STATUS) if r["partition"] == 0]
        overwrite(own, PARTITION_STATUS, of_partitions)
        writer.refresh(NOW)
        assert writer.documents is before, "the verdicts are not complete"
        overwrite(own, GROUP_STATUS, rows(own, GROUP_STATUS)[:1])
        writer.refresh(NOW)
        assert len(values(text(writer), "lagwise_group_partitions", "cluster", "group")) == 1
        labels = ("cluster", "group", "topic", "partition")
        assert {key[3] for key in values(text(writer), "lagwise_partition_lag_records", *labels)} == {"0"}
        append(own, TICKS, row(TICKS, started_at=NOW, finished_at=NOW))
        writer.refresh(NOW)
        assert values(text(writer), "lagwise_analysis_timestamp_seconds") == {(): NOW.timestamp()}

    def test_capacity_is_read_when_it_is_written(self, own: Lake) -> None:
        writer, group = written(own), GROUPS_OF_THE_DEMO[0]
        append(own, CAPACITY, row(CAPACITY, cluster=group.cluster, group=group.group, topic="t", demand_per_second=3.0))
        writer.refresh(NOW)
        found = values(text(writer), "lagwise_group_topic_demand_records_per_second", "cluster", "group", "topic")
        assert found == {(group.cluster, group.group, "t"): 3}

    def test_the_last_round_is_found_on_whatever_day_it_was(self, own: Lake) -> None:
        old = NOW - timedelta(days=3)
        own.replace(TICKS, TICKS.from_rows([row(TICKS, started_at=old, finished_at=old)]))
        assert values(text(written(own)), "lagwise_analysis_timestamp_seconds") == {(): old.timestamp()}

    def test_rounds_of_earlier_days_are_not_read(self, own: Lake) -> None:
        before = set(own.relative_files(TICKS))
        append(own, TICKS, row(TICKS, started_at=NOW - timedelta(days=3), finished_at=NOW - timedelta(days=3)))
        (of_old,) = set(own.relative_files(TICKS)) - before
        (Path(own.location(TICKS)) / of_old).unlink()
        assert values(text(written(own)), "lagwise_lake_readable") == {(): 1}

    def test_what_cannot_be_read_does_not_stop_the_rest(self, own: Lake) -> None:
        writer = written(own)
        append(own, SAMPLES, row(SAMPLES, started_at=NOW, finished_at=NOW))
        max((Path(own.location(SAMPLES)) / "_delta_log").glob("*.json")).write_bytes(b"damaged")
        overwrite(own, GROUP_STATUS, rows(own, GROUP_STATUS)[:1])
        writer.refresh(NOW)
        assert values(text(writer), "lagwise_lake_readable") == {(): 0}
        assert len(values(text(writer), "lagwise_group_partitions", "cluster", "group")) == 1

    def test_verdicts_are_served_where_nothing_else_was_ever_readable(self, own: Lake) -> None:
        for table in (SAMPLES, TICKS, CAPACITY):
            max((Path(own.location(table)) / "_delta_log").glob("*.json")).write_bytes(b"damaged")
        found = text(written(own, name_sets=tuple(EXPORTERS)))
        assert values(found, "lagwise_lake_readable") == {(): 0}
        assert len(values(found, "lagwise_group_partitions", "cluster", "group")) == 3

    def test_a_lake_without_any_round_has_no_groups(self, tmp_path: Path) -> None:
        found = text(written(Lake(str(tmp_path / "lake")), name_sets=tuple(EXPORTERS)))
        assert {s.name for s in samples(found)} == {
            "lagwise_build_info",
            "lagwise_lake_readable",
            "lagwise_metrics_left_out",
        }

    def test_a_lake_that_cannot_be_read(self, own: Lake, caplog: pytest.LogCaptureFixture) -> None:
        writer = written(own)
        log = Path(own.location(TICKS)) / "_delta_log"
        append(own, TICKS, row(TICKS, started_at=NOW, finished_at=NOW))
        newest = max(log.glob("*.json"))
        content = newest.read_bytes()
        newest.write_bytes(b"damaged")
        for _ in range(2):
            writer.refresh(NOW)
        assert values(text(writer), "lagwise_lake_readable") == {(): 0}
        assert len(values(text(writer), "lagwise_group_partitions", "cluster", "group")) == 3, "what was read last"
        assert caplog.text.count("cannot read the lake") == 1
        newest.write_bytes(content)
        writer.refresh(NOW)
        assert values(text(writer), "lagwise_lake_readable") == {(): 1}

    def test_a_mistake_of_ours_ends_nothing(
        self, own: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A clock that fails stands for it, and is logged once; the refresh after it works."""
        stop, moments = threading.Event(), iter([RuntimeError("no clock"), RuntimeError("no clock either"), NOW])
        writer = MetricsWriter(own, configured())

        def clock() -> datetime:
            found = next(moments)
            if isinstance(found, Exception):
                raise found
            stop.set()
            return found

        monkeypatch.setattr("lagwise_app.server.metrics.documents.CHECK_SECONDS", 0.01)
        keep_current(writer, stop, clock)
        assert caplog.text.count("metrics could not be written") == 1
        assert "RuntimeError: no clock" in caplog.text
        assert writer.documents is not None

    def test_who_compresses_once_finds_the_next_document_compressed(self, own: Lake) -> None:
        writer = written(own, name_sets=("burrow",))
        documents = writer.documents
        assert documents is not None
        documents.by_key["", ""].compressed()
        append(own, TICKS, row(TICKS, started_at=NOW, finished_at=NOW))
        writer.refresh(NOW)
        assert writer.documents is not documents
        assert writer.documents is not None
        assert {key: one.was_compressed for key, one in writer.documents.by_key.items()} == {
            ("", ""): True,
            ("burrow", ""): False,
        }


def test_every_sample_is_counted(writer: MetricsWriter) -> None:
    assert writer.documents is not None
    assert writer.documents.samples == sum(
        len(samples(document.text.decode())) for document in writer.documents.by_key.values()
    )
