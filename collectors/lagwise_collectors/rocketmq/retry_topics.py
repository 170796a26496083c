"""Matches retry and dead-letter topics with their groups: RocketMQ has them per group, by name."""

from collections.abc import Iterable

from lagwise.domain.vocabulary import BROADCASTING, ROCKETMQ_RETRY, TopicRole
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.group_view import RocketmqGroup
from lagwise_collectors.sample_builder import SideTopicName

RETRY, DEAD_LETTER = ROCKETMQ_RETRY, "%DLQ%"


def topics_read(group: RocketmqGroup, view: BrokerView) -> set[str]:
    """Topics of a broker that a group has committed on or subscribed to, and its retry topics.

    A broadcasting group neither commits nor retries, and without members nothing is known of it. Commits under its name
    are from a time when it was not broadcasting.
    """
    if group.type == BROADCASTING:
        return {topic for topic in group.topics & view.topics.keys() if not topic.startswith(RETRY)}
    known = set(view.offsets.get(group.name, ())) | group.topics
    return (known | retry_topics(group.name, known)) & view.topics.keys()


def dead_letter_topic(group: str) -> str:
    """The topic of the messages that a group has given up. The broker creates it for the first of them."""
    return f"{DEAD_LETTER}{group}"


def retry_topics(group: str, topics: Iterable[str]) -> set[str]:
    """Possible names of a group's retry topics: its own one, and one per topic that it pops from (both versions)."""
    return {f"{RETRY}{group}"} | {
        f"{RETRY}{group}{sign}{topic}" for topic in topics if not topic.startswith("%") for sign in ("_", "+")
    }


def side_topics_of(groups: Iterable[str], topics: Iterable[str]) -> dict[str, SideTopicName]:
    """The retry and dead-letter topics of groups.

    They belong to a group and not to a topic. Every reader of a main topic is shown its side topics, so the main topic
    must be one that only this group reads: its retry topic, which thus is its own main topic.
    """
    existing = set(topics)
    sides = {topic: SideTopicName(topic, TopicRole.RETRY) for topic in existing if topic.startswith(RETRY)}
    own = {dead_letter_topic(group): SideTopicName(f"{RETRY}{group}", TopicRole.DEAD_LETTER) for group in groups}
    return sides | {topic: side for topic, side in own.items() if topic in existing}
