"""Which retry and dead-letter topics belong to which group: RocketMQ has them per group, and tells by their names."""

from collections.abc import Iterable

from lagwise.domain.vocabulary import BROADCASTING, ROCKETMQ_RETRY, TopicRole
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.group_view import RocketmqGroup

RETRY, DEAD_LETTER = ROCKETMQ_RETRY, "%DLQ%"


def topics_read(group: RocketmqGroup, view: BrokerView) -> set[str]:
    """Topics of a broker that a group has to do with: committed on, subscribed to, or its retries.

    A broadcasting group commits nothing, tries nothing again, and who is not there does not matter to it: without
    members nothing can be said of it. What is committed in its name is of when it was no broadcasting group.
    """
    if group.type == BROADCASTING:
        return {topic for topic in group.topics & view.topics.keys() if not topic.startswith(RETRY)}
    known = set(view.offsets.get(group.name, ())) | group.topics
    return (known | retry_topics(group.name, known)) & view.topics.keys()


def dead_letter_topic(group: str) -> str:
    """Where a group's messages go that it gave up. The broker makes the topic for the first of them."""
    return f"{DEAD_LETTER}{group}"


def retry_topics(group: str, topics: Iterable[str]) -> set[str]:
    """The names that retry topics of a group may have: of its own, and of a topic that it pops from (both versions)."""
    return {f"{RETRY}{group}"} | {
        f"{RETRY}{group}{sign}{topic}" for topic in topics if not topic.startswith("%") for sign in ("_", "+")
    }


def sides_of(groups: Iterable[str], topics: Iterable[str]) -> dict[str, tuple[TopicRole, str]]:
    """Role and main topic of the retry and dead-letter topics of groups.

    They belong to a group and not to a topic. Their main topic is what only this group reads: its retry topic, which so
    is its own main topic. Whoever reads a main topic is told of its side topics, and that must be nobody else.
    """
    there = set(topics)
    sides = {topic: (TopicRole.RETRY, topic) for topic in there if topic.startswith(RETRY)}
    own = {dead_letter_topic(group): (TopicRole.DEAD_LETTER, f"{RETRY}{group}") for group in groups}
    return sides | {topic: side for topic, side in own.items() if topic in there}
