"""The words of the product: what a partition or a group can be, and how the words rank.

Every outcome has a name. Not knowing is a name too (``unknown`` with a reason), never a zero and never ``ok``.
The full definitions stand in ``docs/statuses.md``; the rules that choose between them in
:mod:`lagwise.domain.verdicts.status`.
"""

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """What holds for a group-partition or a group. Declared worst first: the order is the ranking."""

    LOSING_DATA = "losing_data"
    AT_RISK = "at_risk"
    STOPPED = "stopped"
    STALLED = "stalled"
    REWOUND = "rewound"
    FALLING_BEHIND = "falling_behind"
    LAGGING = "lagging"
    CATCHING_UP = "catching_up"
    OK = "ok"
    GHOST = "ghost"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Position from the worst (0) on. Meaningful between known statuses; ``ghost`` and ``unknown`` come last."""
        return STATUSES_WORST_FIRST.index(self)


STATUSES_WORST_FIRST: tuple[Status, ...] = tuple(Status)

#: Statuses that are verdicts on lag, as opposed to "not this group's business" and "cannot be known".
KNOWN_STATUSES: tuple[Status, ...] = tuple(s for s in Status if s not in (Status.GHOST, Status.UNKNOWN))


#: How statuses follow each other on pages and screens. Not knowing is worth a look before a group that is catching up.
DISPLAY_ORDER: tuple[Status, ...] = (
    *(s for s in KNOWN_STATUSES if s not in (Status.CATCHING_UP, Status.OK)),
    Status.UNKNOWN,
    Status.CATCHING_UP,
    Status.OK,
    Status.GHOST,
)


def display_rank(status: str) -> int:
    """Position in :data:`DISPLAY_ORDER`; a status that only a newer version knows comes first."""
    return DISPLAY_ORDER.index(Status(status)) if status in set(Status) else -1


class UnknownReason(StrEnum):
    """Why a status is ``unknown``. Declared in the order in which the reasons are tested."""

    UNREADABLE = "unreadable"
    EXPIRED = "expired"
    NO_COMMIT = "no_commit"
    RECREATED = "recreated"
    OUT_OF_RANGE = "out_of_range"
    NOT_COMMITTING = "not_committing"
    REBALANCING = "rebalancing"
    TOO_FEW_SAMPLES = "too_few_samples"
    #: Of a whole group, never of a partition: its members do not read topics in it.
    NO_TOPICS = "no_topics"


class LossCause(StrEnum):
    """How a loss would come. Of two that would come at the same moment the first one is named: records that are deleted
    are gone for everybody."""

    #: Retention deletes records that were not read.
    DELETION = "deletion"
    #: The broker forgets the committed offsets of a group without members: no record is deleted, but where the group
    #: goes on is then up to ``auto.offset.reset``.
    EXPIRY = "expiry"


class GroupState(StrEnum):
    """States a group coordinator reports, as Kafka names them (those of all group protocols together)."""

    STABLE = "Stable"
    EMPTY = "Empty"
    DEAD = "Dead"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    #: Of a streams group: topics that its topology needs are missing.
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


#: A rebalance is under way: who owns what is not settled.
REBALANCING_STATES = frozenset(
    {
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
    }
)


#: A group of one of these statuses needs no attention.
QUIET_STATUSES = (Status.OK, Status.GHOST)
#: An unknown group needs none either for one of these reasons, in one of these states (None: in any). Without members
#: and commits it is mostly an old name; one that cannot be judged yet may have just lost its only member.
QUIET_UNKNOWN: Mapping[str, tuple[GroupState, ...] | None] = {
    UnknownReason.EXPIRED: (GroupState.EMPTY, GroupState.DEAD),
    UnknownReason.NO_COMMIT: (GroupState.EMPTY, GroupState.DEAD),
    UnknownReason.NO_TOPICS: None,
}


def is_quiet(status: str, state: str | None, reason: str | None) -> bool:
    """Whether a group of this status (if unknown, for this reason) and state needs no attention."""
    if status != Status.UNKNOWN:
        return status in QUIET_STATUSES
    states = QUIET_UNKNOWN.get(reason or "", ())
    return states is None or state in states


#: Type of a group that is only a name for commits: Flink, a script, a consumer that assigns partitions to itself.
SIMPLE = "simple"


#: Types of Kafka groups besides ``classic`` and ``consumer`` (KIP-848): a share group's members share partitions
#: (KIP-932), a streams group's have tasks (KIP-1071), Connect's workers divide connectors. The members of any other
#: group of the classic protocol use it for something of their own (a schema registry's elect a leader).
SHARE = "share"
STREAMS = "streams"
CONNECT = "connect"
OTHER_PROTOCOL = "other"
#: Types of groups that, without any commit, read no topic.
NOT_READING = frozenset({CONNECT, OTHER_PROTOCOL})


#: Type of RocketMQ groups whose members read everything each.
BROADCASTING = "broadcasting"
#: Types of groups whose members share queues or partitions, or do not say whose they are: nothing is assigned there.
SHARING_TYPES = frozenset({BROADCASTING, "pop", "pull", SHARE})
#: Types of RocketMQ groups whose queues are shared out among members, by RocketMQ's own rules.
QUEUE_TYPES = frozenset({"concurrent", "orderly", "clustering"})

#: Where offsets of broadcasting groups come from that no member reports: the files in which members keep them, and what
#: the broker saw all members fetch, whatever they have done of it.
LOCAL_FILES = "local files"
BROADCAST_HINT = "broadcast hint"

#: A group's retry topic in RocketMQ begins so.
ROCKETMQ_RETRY = "%RETRY%"
#: What `samples.system` calls a cluster of RocketMQ.
ROCKETMQ = "rocketmq"
#: The topic in which Kafka keeps committed offsets.
OFFSETS_TOPIC = "__consumer_offsets"


class Engine(StrEnum):
    """Types of groups whose offsets are read outside Kafka: who keeps them."""

    FLINK = "flink"
    SPARK = "spark"
    SQL = "sql"
    FILES = "files"


#: Types of groups that have no group protocol: their offsets are written, and nothing reports by whom.
WITHOUT_PROTOCOL = frozenset({SIMPLE, *Engine})
#: State of a group that is only offsets on record outside Kafka: whether a job runs that writes them is not known. (A
#: group whose job is known has the job's state, in the engine's own word, as RUNNING.)
RECORDED = "Recorded"
#: State of a Flink job that reads, in Flink's own word.
RUNNING = "RUNNING"
#: States in which a group reads all that it is to read: a topic that none of its members is assigned was left.
READING_STATES = frozenset({GroupState.STABLE, RUNNING})


class EventKind(StrEnum):
    """Things that happened, as rows of ``raw/events``."""

    REBALANCE = "rebalance"
    STATE_CHANGED = "state_changed"
    COMMIT_REWOUND = "commit_rewound"
    COMMIT_SKIPPED = "commit_skipped"
    OFFSETS_GONE = "offsets_gone"
    GROUP_GONE = "group_gone"
    TOPIC_RECREATED = "topic_recreated"
    TOPIC_GONE = "topic_gone"
    PARTITIONS_ADDED = "partitions_added"
    CONFIG_CHANGED = "config_changed"
    #: Partitions of a topic have another leader than before.
    LEADERS_MOVED = "leaders_moved"
    #: Partitions of a topic have no leader any more; others may have moved at the same time.
    LEADERS_LOST = "leaders_lost"
    #: Partitions of a topic that had no leader have one again; others may have moved at the same time.
    LEADERS_RESTORED = "leaders_restored"


#: Leaders of a topic's partitions changed.
LEADER_EVENTS = frozenset({EventKind.LEADERS_MOVED, EventKind.LEADERS_LOST, EventKind.LEADERS_RESTORED})


class EventClass(StrEnum):
    """What the list of all that happened to a group tells apart. Not all of it is in ``raw/events``."""

    #: The group's status changed.
    STATUS = "status"
    #: An alert began or ended.
    ALERT = "alert"
    REBALANCE = "rebalance"
    #: Its state at the coordinator changed, or it is gone.
    GROUP = "group"
    #: Committed offsets went back, skipped records, or are gone.
    OFFSETS = "offsets"
    #: A topic that it reads was changed, deleted or created again.
    TOPIC = "topic"
    #: Leaders of a topic that it reads changed.
    LEADERS = "leaders"
    #: T1, T2 or what is written has another level than before, or something else that was measured has.
    LEVEL = "level"


#: The kinds of ``raw/events`` by class; a kind that only a newer version knows is of the group or of the topic.
KINDS_OF_CLASS: dict[EventClass, frozenset[EventKind]] = {
    EventClass.REBALANCE: frozenset({EventKind.REBALANCE}),
    EventClass.GROUP: frozenset({EventKind.STATE_CHANGED, EventKind.GROUP_GONE}),
    EventClass.OFFSETS: frozenset({EventKind.COMMIT_REWOUND, EventKind.COMMIT_SKIPPED, EventKind.OFFSETS_GONE}),
    EventClass.TOPIC: frozenset(
        {EventKind.TOPIC_RECREATED, EventKind.TOPIC_GONE, EventKind.PARTITIONS_ADDED, EventKind.CONFIG_CHANGED}
    ),
    EventClass.LEADERS: LEADER_EVENTS,
}


class TopicRole(StrEnum):
    """What a topic is to the main topic that it belongs to; an ordinary topic has no role."""

    #: Records that could not be processed and are to be tried again.
    RETRY = "retry"
    #: Records that were given up.
    DEAD_LETTER = "dead_letter"


class RebalanceCause(StrEnum):
    """Why a group was rebalanced, as `raw/events` says it. Of several that hold, the first one declared is given."""

    #: A member's client left because its handler took longer than ``max.poll.interval.ms``.
    POLL_INTERVAL_EXCEEDED = "poll_interval_exceeded"
    #: A member sent no heartbeat for ``session.timeout.ms`` and was taken for dead.
    MEMBER_FAILED = "member_failed"
    #: A member left by itself, as at a shutdown.
    MEMBER_LEFT = "member_left"
    #: A member is gone, and what is known does not show whether it left or failed.
    MEMBER_GONE = "member_gone"
    GROUP_APPEARED = "group_appeared"
    MEMBER_JOINED = "member_joined"
    #: A member subscribes to other topics than before.
    SUBSCRIPTION_CHANGED = "subscription_changed"
    #: A topic that is read has more partitions than before.
    PARTITIONS_ADDED = "partitions_added"
    #: A static member came back under its ``group.instance.id`` and kept what it owned.
    STATIC_MEMBER_RETURNED = "static_member_returned"
    #: The same members with the same subscriptions joined anew (the leader does so when its metadata changed).
    REJOINED = "rejoined"
    #: A rebalance that had not ended when it was seen.
    UNFINISHED = "unfinished"


class EventSource(StrEnum):
    """Where an event was seen."""

    #: Two samples differ; what came and went between them was not seen.
    SAMPLES = "samples"
    #: A record of ``__consumer_offsets``: exact.
    OFFSETS_TOPIC = "offsets_topic"
