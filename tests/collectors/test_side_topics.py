"""Which topics are retry and dead-letter topics of which: by their names."""

import pytest

from lagwise.config import Cluster, Config
from lagwise.domain.vocabulary import TopicRole
from lagwise.platform.errors import ConfigError
from lagwise.tables.raw import TOPICS, WATERMARKS
from lagwise_collectors.kafka.requests.side_topics import LIST_EVERY_SECONDS, SideTopics
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.sample_builder import SideTopicName
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, rows

DEAD, RETRY = TopicRole.DEAD_LETTER, TopicRole.RETRY


def sides_of(*names: str, read: set[str], **patterns: tuple[str, ...]) -> dict[str, SideTopicName]:
    cluster = Cluster.model_validate({"bootstrap": "127.0.0.1:9", "side_topics": patterns})
    return SideTopics(cluster.side_topics, lambda: names).of(read)


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("orders-retry", SideTopicName("orders", RETRY)),
        ("orders-retry-0", SideTopicName("orders", RETRY)),
        ("orders-retry-10000", SideTopicName("orders", RETRY)),
        ("orders-retry5000", SideTopicName("orders", RETRY)),
        ("orders.retry.1", SideTopicName("orders", RETRY)),
        ("orders.DLT", SideTopicName("orders", DEAD)),
        ("orders-dlt", SideTopicName("orders", DEAD)),
        ("orders-retry-0-dlt", SideTopicName("orders", DEAD)),
        ("orders-dlq", SideTopicName("orders", DEAD)),
        ("orders_dead_letters", SideTopicName("orders", DEAD)),
        ("orders-retryable", None),
        ("orders", None),
        ("-dlq", None),
        ("retry", None),
        ("other-retry", None),
        ("orders-retry\n", None),
    ],
)
def test_the_usual_names(name: str, side: SideTopicName | None) -> None:
    assert sides_of(name, read={"orders"}) == ({name: side} if side else {})


def test_names_are_configurable_and_may_be_switched_off() -> None:
    own = {"retry": (r"again\.(.+)",), "dead_letter": ()}
    found = sides_of("again.orders", "orders.DLT", read={"orders"}, **own)
    assert found == {"again.orders": SideTopicName("orders", RETRY)}
    assert sides_of("orders-retry", read={"orders"}, retry=(), dead_letter=()) == {}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("(.+", "is not a regular expression"), (".+-retry", "has no group for the name of the main topic")],
)
def test_a_pattern_that_cannot_work_is_refused(pattern: str, said: str, tmp_path: object) -> None:
    from pydantic import ValidationError

    del tmp_path
    with pytest.raises((ValidationError, ConfigError), match=said):
        Config.model_validate({"clusters": [{"bootstrap": "h:1", "side_topics": {"retry": [pattern]}}]})


def test_the_names_of_all_topics_are_listed_once_a_minute() -> None:
    now, listed = [0.0], []

    def names() -> list[str]:
        listed.append(now[0])
        return ["orders-retry"] if len(listed) == 1 else ["orders-retry", "orders-dlq"]

    sides = SideTopics(Cluster(bootstrap="127.0.0.1:9").side_topics, names, lambda: now[0])
    assert set(sides.of({"orders"})) == {"orders-retry"}
    now[0] = LIST_EVERY_SECONDS - 1
    assert sides.of({"payments"}) == {}
    now[0] = LIST_EVERY_SECONDS
    assert set(sides.of({"orders"})) == {"orders-retry", "orders-dlq"}
    assert listed == [0.0, LIST_EVERY_SECONDS]


@pytest.mark.broker
def test_they_are_watched_even_without_commits(broker: KafkaBroker) -> None:
    lab = Lab(broker.client_settings())
    topic = lab.topic("orders")
    dead, retry = lab.topic("orders.DLT", partitions=1), lab.topic("orders-retry-0", partitions=1)
    lab.topic("others.DLT", partitions=1)
    lab.commit(lab.name("reader"), topic, {0: 0})
    lab.produce(dead, {0: 7})
    source = KafkaSource(lab.cluster())
    snapshot = source.collect()
    source.close()
    assert snapshot.errors == {}
    assert {r["topic"]: r["high_watermark"] for r in rows(snapshot, WATERMARKS)} == {topic: 0, dead: 7, retry: 0}
    reported = {r["topic"]: (r["role"], r["main_topic"]) for r in rows(snapshot, TOPICS)}
    assert reported == {topic: (None, None), dead: ("dead_letter", topic), retry: ("retry", topic)}
