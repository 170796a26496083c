"""Filling a broker with topics, messages, groups and committed offsets, by the product's own frames.

The product only reads. What is written here is asked for with its ``Request``, ``encode`` and ``Connection``; only
requests with a body need a way of their own. Codes and fields are those of ``RequestCode`` and its headers in
``org.apache.rocketmq.remoting.protocol``.
"""

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from lagwise_collectors.rocketmq.remoting.connection import Connection, ConnectionSettings
from lagwise_collectors.rocketmq.remoting.errors import RocketmqTrouble
from lagwise_collectors.rocketmq.remoting.frames import Request, decode, encode, length_of

#: So long may a broker take to answer one request while it is filled.
_FILLING_SECONDS = 60.0
_SEND_MESSAGE, _UPDATE_CONSUMER_OFFSET, _UPDATE_TOPIC, _UPDATE_GROUP = 10, 15, 17, 200
_READ_AND_WRITE = 6


#: Committed offsets by group, topic and queue.
Committed = dict[tuple[str, str, int], int]


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is: topics of so many queues, and groups that committed on every queue of every topic."""

    topics: int
    queues: int
    groups: int
    messages_per_queue: int = 2

    @property
    def group_partitions(self) -> int:
        """Committed offsets."""
        return self.topics * self.queues * self.groups

    @property
    def topic_names(self) -> list[str]:
        """In their order."""
        return [f"bench-{number:02d}" for number in range(self.topics)]

    @property
    def group_names(self) -> list[str]:
        """In their order."""
        return [f"readers-{number:03d}" for number in range(self.groups)]


def fill(address: str, size: Size) -> Committed:
    """Make everything; returns the committed offsets. Raises SystemExit where one is refused.

    The offsets are random numbers up to 10⁹, most of them beyond the few messages that a queue holds: the broker takes
    them as they are, and so its answer is as long as that of a broker that has been used for years.
    """
    exchange(address, [(_topic(name, size.queues), b"") for name in size.topic_names])
    exchange(address, [(_GROUP, _group(name)) for name in size.group_names])
    exchange(address, list(_messages(size)))
    random = Random("committed")  # the same in every run
    committed = {
        (group, topic, queue): random.randrange(10**9)
        for group in size.group_names
        for topic in size.topic_names
        for queue in range(size.queues)
    }
    # Several threads of the broker handle what comes together, and where they have the first commits of a group on a
    # topic, one overwrites the other's: those are done with before the others are sent.
    first = [_commit(*place, offset) for place, offset in committed.items() if place[2] == 0]
    others = [_commit(*place, offset) for place, offset in committed.items() if place[2] > 0]
    with contextlib.closing(Connection(address, ConnectionSettings(_FILLING_SECONDS))) as connection:
        answers = connection.ask_all(first) + connection.ask_all(others)
    refused = [answer for answer in answers if isinstance(answer, RocketmqTrouble)]
    if refused:
        raise SystemExit(f"filling the broker: {refused[0]}")
    return committed


def exchange(address: str, requests: Sequence[tuple[Request, bytes]]) -> None:
    """Send requests with their bodies, one after the other. Raises SystemExit where one is refused."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), _FILLING_SECONDS) as connection:
        stream = connection.makefile("rb")
        for number, (request, body) in enumerate(requests, 1):
            connection.sendall(with_body(encode(request, number, request.fields), body))
            answer = decode(stream.read(length_of(stream.read(4))))
            if answer.code != 0:
                raise SystemExit(f"{request.what}: the broker refuses with {answer.code}, {answer.remark}")


def with_body(frame: bytes, body: bytes) -> bytes:
    """A frame without a body, with one."""
    return struct.pack(">I", len(frame) - 4 + len(body)) + frame[4:] + body


def _topic(name: str, queues: int) -> Request:
    fields = {
        "topic": name,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": str(_READ_AND_WRITE),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    return Request(_UPDATE_TOPIC, f"making topic {name}", fields)


_GROUP = Request(_UPDATE_GROUP, "making a group")


def _group(name: str) -> bytes:
    return json.dumps({"groupName": name, "consumeEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16}).encode()


def _messages(size: Size) -> Iterator[tuple[Request, bytes]]:
    fields = {
        "producerGroup": "bench",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "sysFlag": "0",
        "bornTimestamp": str(int(time.time() * 1000)),
        "flag": "0",
    }
    for topic in size.topic_names:
        request = f"writing to topic {topic}"
        for queue in range(size.queues):
            here = Request(_SEND_MESSAGE, request, fields | {"topic": topic, "queueId": str(queue)})
            for _ in range(size.messages_per_queue):
                yield here, b"a message"


def _commit(group: str, topic: str, queue: int, offset: int) -> Request:
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue), "commitOffset": str(offset)}
    return Request(_UPDATE_CONSUMER_OFFSET, f"committing of group {group} on topic {topic}", fields)
