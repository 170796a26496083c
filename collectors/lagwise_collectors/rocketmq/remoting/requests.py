"""Requests to brokers, and the parsing of their responses. Every function raises MalformedResponse for invalid ones.

The codes are those of ``org.apache.rocketmq.remoting.protocol.RequestCode``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zlib import crc32

from lagwise_collectors.rocketmq.remoting import response_bodies
from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse
from lagwise_collectors.rocketmq.remoting.frames import Request
from lagwise_collectors.rocketmq.remoting.response_bodies import ObjectKey, mapping, text_of, whole, whole_of

TOPIC_CONFIGS = Request(21, "listing topics")
BROKER_CONFIG = Request(26, "reading the broker's settings")
BROKER_RUNTIME = Request(28, "reading the broker's state")
CONSUMER_OFFSETS = Request(43, "reading committed offsets")
GROUP_CONFIGS = Request(201, "listing groups")


def topic_stats(topic: str) -> Request:
    """The ends of a topic's queues."""
    return Request(202, f"offsets of topic {topic}", {"topic": topic})


def group_connections(group: str) -> Request:
    """Who is in a group."""
    return Request(203, f"members of group {group}", {"consumerGroup": group})


def running_info(group: str, client_id: str) -> Request:
    """A member's own report; the broker forwards the request."""
    fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
    return Request(307, f"asking member {client_id} of group {group}", fields)


class Queue(NamedTuple):
    """A queue of a topic on a broker."""

    topic: str
    broker: str
    queue: int


class QueueRange(NamedTuple):
    """The ends of a queue."""

    #: Offset of the oldest message.
    start: int
    #: Offset of the next message.
    end: int
    #: When the last message was stored.
    newest_at: datetime | None


class TopicConfig(NamedTuple):
    """A topic as one broker has it."""

    queues: int
    cleanup_policy: str


@dataclass(frozen=True, slots=True)
class OnlineGroup:
    """A group that has members on a broker."""

    #: Address by client id.
    members: Mapping[str, str]
    topics: frozenset[str]
    is_broadcasting: bool
    #: Members fetch by themselves (pull consumers) and are not handed messages by a listener.
    is_pulling: bool
    #: Tags or an SQL expression by topic, ``*`` is all: those of the member that connected last.
    filters: Mapping[str, str] = field(default_factory=dict)


class ConsumeStats(NamedTuple):
    """What a member consumed of a topic in its last minute."""

    #: The mean time from when a thread takes a message to when it has processed it (*consume RT*).
    seconds_per_message: float
    #: By the rate that the member reports. One that started on the topic less than a minute ago consumed fewer.
    messages: int


@dataclass(frozen=True, slots=True)
class MemberReport:
    """What a member reports about itself."""

    #: Its offset on each queue that it owns; None: it has processed nothing of it yet.
    progress: Mapping[Queue, int | None] = field(default_factory=dict)
    is_orderly: bool = False
    is_popping: bool = False
    #: Messages that were popped and not acknowledged yet.
    unacknowledged: int = 0
    #: By topic, where a thread takes one message at a time.
    stats: Mapping[str, ConsumeStats] = field(default_factory=dict)
    #: None: it does not report them.
    threads: int | None = None
    #: When its process started, as it reports it: a new process counts from 0.
    started: str | None = None
    #: Tags or an SQL expression by topic, as in :attr:`OnlineGroup.filters`.
    filters: Mapping[str, str] = field(default_factory=dict)


def groups_of(body: bytes) -> set[str]:
    """Names of the groups that a broker knows, without RocketMQ's own."""
    return {
        str(name) for name in mapping(response_bodies.read(body), "subscriptionGroupTable") if not _is_own(str(name))
    }


#: ``MixAll``: groups that brokers and tools use themselves.
_OWN_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER",
        "TOOLS_CONSUMER",
        "SCHEDULE_CONSUMER",
        "FILTERSRV_CONSUMER",
        "__MONITOR_CONSUMER",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_SYS_RMQ_TRANS",
    }
)


def _is_own(group: str) -> bool:
    return group in _OWN_GROUPS or group.startswith("CID_RMQ_SYS_")


def topics_of(body: bytes) -> dict[str, TopicConfig]:
    """The topics that a broker has."""
    found = {}
    for name, config in mapping(response_bodies.read(body), "topicConfigTable").items():
        config = mapping(config)
        policy = str(mapping(config, "attributes").get("cleanup.policy", "DELETE"))
        queues = max(whole(config, "readQueueNums"), whole(config, "writeQueueNums"))
        found[str(name)] = TopicConfig(queues, "compact" if policy == "COMPACTION" else "delete")
    return found


#: Offsets as they stand: by group, topic and the queue's number as text.
OffsetTable = dict[str, dict[str, Mapping[str, Any]]]


class StoredOffsets(NamedTuple):
    """The offsets that a broker stores."""

    committed: OffsetTable
    #: Of broadcasting groups: what the member that has fetched least has fetched; how much it processed is unknown.
    fetched: OffsetTable


def offsets_of(body: bytes) -> StoredOffsets:
    """The offsets of all groups. Keys of fetched ones are ``topic@group@broadcast``."""
    kept = StoredOffsets({}, {})
    for key, queues in mapping(response_bodies.read(body), "offsetTable").items():
        topic, _, group = str(key).partition("@")
        name, _, hint = group.partition("@")
        if name and hint in ("", "broadcast"):
            (kept.fetched if hint else kept.committed).setdefault(name, {})[topic] = mapping(queues)
    return kept


def ranges_of(body: bytes) -> dict[int, QueueRange]:
    """The queues of a topic on a broker, by number."""
    found = {}
    for key, stats in mapping(response_bodies.read(body), "offsetTable").items():
        queue, stats = queue_of(key), mapping(stats)
        newest = whole(stats, "lastUpdateTimestamp")
        found[queue.queue] = QueueRange(whole(stats, "minOffset"), whole(stats, "maxOffset"), _time(newest))
    return found


def online_group_of(body: bytes) -> OnlineGroup:
    """Who is in a group."""
    found = mapping(response_bodies.read(body))
    connected = _listed(found, "connectionSet")
    return OnlineGroup(
        members={text_of(mapping(one), "clientId"): _host(text_of(mapping(one), "clientAddr")) for one in connected},
        topics=frozenset(map(str, mapping(found, "subscriptionTable"))),
        is_broadcasting=found.get("messageModel") == "BROADCASTING",
        is_pulling=found.get("consumeType") == "CONSUME_ACTIVELY",
        filters=_filters_of(mapping(found, "subscriptionTable").values()),
    )


#: A longer expression is cut, and gets a checksum that distinguishes it from others with the same beginning.
_LONGEST_FILTER = 200


def _filters_of(subscriptions: Iterable[Any]) -> dict[str, str]:
    return {text_of(one, "topic"): _filter_of(one) for one in map(mapping, subscriptions)}


def _filter_of(subscription: Mapping[Any, Any]) -> str:
    """Tags in the order of their names, or an expression as it is."""
    wanted = str(subscription.get("subString") or "*").strip()
    if subscription.get("expressionType") in (None, "TAG"):
        wanted = " || ".join(sorted({tag.strip() for tag in wanted.split("||")} - {""})) or "*"
    if len(wanted) <= _LONGEST_FILTER:
        return wanted
    return f"{wanted[: _LONGEST_FILTER - 11]}… {crc32(wanted.encode()):08x}"


def member_report_of(body: bytes) -> MemberReport:
    """A member's report about itself."""
    found = mapping(response_bodies.read(body))
    progress: dict[Queue, int | None] = {}
    for key, state in mapping(found, "mqTable").items():
        state = mapping(state)
        if not state.get("droped"):  # a queue that it is about to release
            committed = whole(state, "commitOffset")
            progress[queue_of(key)] = committed if committed >= 0 else None
    popped = mapping(found, "mqPopTable").values()
    properties = mapping(found, "properties")
    return MemberReport(
        progress=progress,
        is_orderly=properties.get("PROP_CONSUMEORDERLY") == "true",
        is_popping=bool(popped),
        unacknowledged=sum(max(0, whole(mapping(state), "waitAckCount")) for state in popped),
        stats=_stats_of(mapping(found, "statusTable"), properties),
        threads=_threads_of(properties),
        started=str(properties.get("PROP_CONSUMER_START_TIMESTAMP")),
        filters=_filters_of(_listed(found, "subscriptionSet")),
    )


#: ``ConsumerStatsManager`` reports means over this time.
CONSUME_STATS_SECONDS = 60.0


def _stats_of(table: Mapping[Any, Any], properties: Mapping[Any, Any]) -> dict[str, ConsumeStats]:
    """By topic. A consume RT is that of a call, and of a message only where each call gets one, as by default."""
    if properties.get("consumeMessageBatchMaxSize", "1") != "1":
        return {}
    found = {}
    for topic, status in table.items():
        status = mapping(status)
        milliseconds, per_second = (_real(status, name) for name in ("consumeRT", "consumeOKTPS"))
        messages = round(per_second * CONSUME_STATS_SECONDS)
        if milliseconds > 0.0 and messages > 0:
            found[str(topic)] = ConsumeStats(milliseconds / 1000.0, messages)
    return found


def _listed(found: Mapping[Any, Any], name: str) -> list[Any]:
    value = found.get(name, [])
    if not isinstance(value, list):
        raise MalformedResponse(f"{name} is not a list")
    return value


def _threads_of(properties: Mapping[Any, Any]) -> int | None:
    size = properties.get("PROP_THREADPOOL_CORE_SIZE")
    threads = int(size) if isinstance(size, str) and size.isdecimal() and len(size) < 7 else 0
    return threads or None


def _real(found: Mapping[Any, Any], name: str) -> float:
    """A number from 0 to 1e12; 0 where it is missing. Raises MalformedResponse."""
    value = found.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise MalformedResponse(f"{name} is not a number")
    return float(value)


def config_of(body: bytes) -> dict[str, str]:
    """A broker's settings: lines of ``key=value``."""
    lines = body.decode("utf-8", "replace").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def runtime_of(body: bytes) -> dict[str, str]:
    """A broker's state, all of it text."""
    return {str(name): str(value) for name, value in mapping(response_bodies.read(body), "table").items()}


def queue_of(key: Any) -> Queue:
    """A queue that stands as a key. Raises Malformed."""
    if not isinstance(key, ObjectKey):
        raise MalformedResponse("a queue is not an object")
    fields = key.fields()
    return Queue(text_of(fields, "topic"), text_of(fields, "brokerName"), whole_of(fields.get("queueId"), "queueId"))


#: The year 2100. Later times are invalid, and Arrow and Python cannot hold all of them.
_LATEST_MS = 4_102_444_800_000


def _time(milliseconds: int) -> datetime | None:
    if not 0 < milliseconds < _LATEST_MS:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _host(address: str) -> str:
    return address.rpartition(":")[0].lstrip("/") or address
