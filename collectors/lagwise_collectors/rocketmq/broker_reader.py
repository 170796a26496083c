"""Reading one broker, step by step: each step fills in more of its view, and raises RocketmqTrouble where it cannot."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from lagwise_collectors.rocketmq.remoting import requests
from lagwise_collectors.rocketmq.remoting.client import RocketmqBroker, RocketmqClient
from lagwise_collectors.rocketmq.remoting.connection import Answer, body_of
from lagwise_collectors.rocketmq.remoting.errors import CONSUMER_NOT_ONLINE, RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.frames import Frame, Request
from lagwise_collectors.rocketmq.remoting.requests import (
    MemberReport,
    OffsetTable,
    OnlineGroup,
    QueueRange,
    TopicConfig,
)

T = TypeVar("T")


@dataclass(slots=True)
class BrokerView:
    """What one broker returned in this sample."""

    broker: RocketmqBroker
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    #: Groups by name; None: the group has no members on this broker.
    online: dict[str, OnlineGroup | None] = field(default_factory=dict)
    #: Committed offsets.
    offsets: OffsetTable = field(default_factory=dict)
    #: How far all members of broadcasting groups have fetched.
    fetched: OffsetTable = field(default_factory=dict)
    #: Ends of queues by topic and queue.
    ranges: dict[str, dict[int, QueueRange]] = field(default_factory=dict)
    group_troubles: dict[str, RocketmqTrouble] = field(default_factory=dict)
    topic_troubles: dict[str, RocketmqTrouble] = field(default_factory=dict)
    offsets_read_at: datetime | None = None
    ranges_read_at: datetime | None = None
    #: Why the broker could not be read completely.
    trouble: RocketmqTrouble | None = None


class BrokerReader:
    """Reads brokers. ``clock`` dates what was read."""

    def __init__(self, client: RocketmqClient, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock

    def on_each(self, views: Sequence[BrokerView], step: Callable[[BrokerView], None]) -> None:
        """Run a step on every broker that has answered so far. A failure of the whole broker is set in its view."""
        readable = {view.broker.name: view for view in views if view.trouble is None}
        outcome = self._client.on_each(
            [view.broker for view in readable.values()], lambda broker: step(readable[broker.name])
        )
        for name, result in outcome.items():
            if isinstance(result, RocketmqTrouble):
                readable[name].trouble = result

    def names(self, view: BrokerView) -> None:
        """Its topics and groups."""
        topics, groups = self._ask(view, [requests.TOPIC_CONFIGS, requests.GROUP_CONFIGS])
        view.topics, view.groups = requests.topics_of(body_of(topics)), requests.groups_of(body_of(groups))

    def members(self, view: BrokerView, groups: Collection[str]) -> None:
        """The members of these groups that the broker knows."""
        names = sorted(view.groups & set(groups))
        answers = self._ask(view, [requests.group_connections(name) for name in names])
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, RocketmqTrouble) and answer.response_code == CONSUMER_NOT_ONLINE:
                view.online[name] = None
                continue
            found = _parsed(answer, requests.online_group_of)
            if isinstance(found, RocketmqTrouble):
                view.group_troubles[name] = found
            else:
                view.online[name] = found

    def ask_members(self, view: BrokerView, members: Sequence[tuple[str, str]]) -> list[MemberReport | RocketmqTrouble]:
        """The reports of members (group and client id), in their order. The broker forwards the request to them."""
        asked = [requests.running_info(group, client_id) for group, client_id in members]
        answers = self._client.ask_all(view.broker.address, asked, within_seconds=self._client.timeout_seconds)
        return [_parsed(answer, requests.member_report_of) for answer in answers]

    def offsets(self, view: BrokerView) -> None:
        """The committed offsets of all groups."""
        (answer,) = self._ask(view, [requests.CONSUMER_OFFSETS])
        view.offsets, view.fetched = requests.offsets_of(body_of(answer))
        view.offsets_read_at = self._clock()

    def ranges(self, view: BrokerView, topics: Collection[str]) -> None:
        """The ends of these topics' queues."""
        names = sorted(set(topics) & set(view.topics))
        answers = self._ask(view, [requests.topic_stats(name) for name in names])
        view.ranges_read_at = self._clock()
        for name, answer in zip(names, answers, strict=True):
            found = _parsed(answer, requests.ranges_of)
            if isinstance(found, RocketmqTrouble):
                view.topic_troubles[name] = found
            else:
                view.ranges[name] = found

    def _ask(self, view: BrokerView, asked: Sequence[Request]) -> list[Answer]:
        """The answers. Raises RocketmqTrouble where none of them arrived: no later request would succeed either."""
        answers = self._client.ask_all(view.broker.address, asked)
        lost = [answer for answer in answers if isinstance(answer, RocketmqTrouble) and answer.response_code is None]
        if lost and len(lost) == len(answers):
            raise lost[0]
        return answers


def _parsed(answer: Answer, parse: Callable[[bytes], T]) -> T | RocketmqTrouble:
    if not isinstance(answer, Frame):
        return answer
    try:
        return parse(answer.body)
    except RocketmqTrouble as trouble:
        return trouble
