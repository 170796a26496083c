"""The scenarios of the demo: topics of a shop, and one consumer group for each possible trouble.

Importable without confluent-kafka: the demo compares what it shows with ``expected`` here.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from lagwise.domain.vocabulary import Status, UnknownReason


class Behaviour(StrEnum):
    """What a group's members do."""

    STEADY = "steady"
    """Read all there is, commit every second."""
    THROTTLED = "throttled"
    """Read at most so many records per second, commit every second."""
    STALLING = "stalling"
    """Read for a while, then read nothing more but stay in the group."""
    KILLED = "killed"
    """Read in a process of its own, which is killed after a while (SIGKILL: no goodbye to the group)."""
    FLAPPING = "flapping"
    """One member slow to give its partitions back, one that joins and leaves all the time."""
    NOT_COMMITTING = "not_committing"
    """Read all there is, never commit."""


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic and what is written to it: records per second after ``preloaded`` records at the start."""

    name: str
    partitions: int
    rate_per_second: float
    preloaded: int = 0
    retention_seconds: float | None = None
    segment_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DemoScenario:
    """One consumer group: its behaviour, and its expected status from the second minute on.

    ``expected`` are status words, an unknown one with its reason (``unknown:no_commit``): any of them is right. A group
    that works through a backlog is ``expected_without_backlog`` to be something else once it is done.
    ``rate_per_second`` is what the whole group reads at most. ``left_topic`` was once committed and is read no more.
    """

    group: str
    topic: str
    story: str
    expected: tuple[str, ...]
    behaviour: Behaviour = Behaviour.STEADY
    members: int = 2
    rate_per_second: float | None = None
    group_protocol: str = "classic"
    left_topic: str | None = None
    expected_without_backlog: tuple[str, ...] = ()

    @property
    def backlog_seconds(self) -> float:
        """How long the group needs for what was written before it started; infinite if it never gets through."""
        topic = TOPIC[self.topic]
        gain = (self.rate_per_second or 0.0) - topic.rate_per_second
        return topic.preloaded / gain if gain > 0 else math.inf

    def expected_at(self, elapsed_seconds: float) -> tuple[str, ...]:
        """The statuses that are right so many seconds after the start of the load.

        Around the end of a backlog, which comes later on a slow machine, both are.
        """
        if not self.expected_without_backlog or elapsed_seconds < (1 - _BACKLOG_TOLERANCE) * self.backlog_seconds:
            return self.expected
        if elapsed_seconds < (1 + _BACKLOG_TOLERANCE) * self.backlog_seconds:
            return (*self.expected, *self.expected_without_backlog)
        return self.expected_without_backlog

    def agrees(self, status: str, reason: str | None, elapsed_seconds: float) -> bool:
        """Whether a status shown at a moment (with its reason, where it is ``unknown``) is an expected one."""
        shown = unknown(reason) if status == Status.UNKNOWN and reason else status
        return shown in self.expected_at(elapsed_seconds)


def unknown(reason: str) -> str:
    """How an unknown status is written with its reason."""
    return f"{Status.UNKNOWN}:{reason}"


#: By which part of its length a backlog may end earlier or later than its rates say.
_BACKLOG_TOLERANCE = 0.1
#: When the stalling group stops reading, and when the killed one dies, in seconds after the members' start. Several
#: samples must see them commit before, also where the first comes late: without a commit cadence that is known, a
#: standstill takes a minute and a half.
STALLS_AFTER_SECONDS = KILLED_AFTER_SECONDS = 20.0
#: How long the slow member of the flapping group takes to give its partitions back, at least and at most: irregular, so
#: that no sampling interval falls into step with it. And for how long the other member stays.
SLOW_REVOKE_SECONDS = (3.0, 7.0)
FLAPPING_STAY_SECONDS = 0.2

TOPICS: tuple[DemoTopic, ...] = (
    DemoTopic("orders", partitions=6, rate_per_second=180),
    DemoTopic("orders-legacy", partitions=2, rate_per_second=0, preloaded=400),
    DemoTopic("product-changes", partitions=4, rate_per_second=120),
    DemoTopic("payments", partitions=3, rate_per_second=90),
    DemoTopic("shipments", partitions=3, rate_per_second=60),
    # 10 records per second are gained on this backlog: it lasts for five and a half hours. A larger one would take
    # noticeable time to write, which everything else waits for.
    DemoTopic("invoices", partitions=3, rate_per_second=10, preloaded=200_000),
    DemoTopic("email-requests", partitions=2, rate_per_second=40),
    DemoTopic("stock-levels", partitions=2, rate_per_second=20),
    DemoTopic("ledger-entries", partitions=4, rate_per_second=60),
    DemoTopic("clickstream", partitions=3, rate_per_second=60),
    DemoTopic("web-sessions", partitions=2, rate_per_second=60, retention_seconds=60, segment_seconds=5),
)

SCENARIOS: tuple[DemoScenario, ...] = (
    DemoScenario(
        "billing",
        "orders",
        "Two instances read every order within a second or two.",
        (Status.OK,),
    ),
    DemoScenario(
        "search-indexer",
        "product-changes",
        "The search index takes half as many changes as the shop makes, so the backlog grows steadily.",
        (Status.FALLING_BEHIND,),
        Behaviour.THROTTLED,
        rate_per_second=60,
    ),
    DemoScenario(
        "fraud-check",
        "payments",
        "Its scoring service hangs: both instances stay in the group, but nothing is read or committed any more.",
        (Status.STALLED,),
        Behaviour.STALLING,
    ),
    DemoScenario(
        "warehouse-sync",
        "shipments",
        "Its only process was killed without leaving the group, and no consumer reads the shipments any more.",
        (Status.STOPPED,),
        Behaviour.KILLED,
        members=1,
    ),
    DemoScenario(
        "invoice-archiver",
        "invoices",
        "It was off for the night and works through the backlog for hours, twice as fast as invoices arrive.",
        (Status.CATCHING_UP,),
        Behaviour.THROTTLED,
        members=1,
        rate_per_second=20,
        expected_without_backlog=(Status.OK,),
    ),
    DemoScenario(
        "email-sender",
        "email-requests",
        "Four instances share two partitions: it keeps up, and two of the four have nothing to do.",
        (Status.OK,),
        members=4,
    ),
    DemoScenario(
        "stock-cache",
        "stock-levels",
        "An autoscaler adds and removes an instance all the time, so the group hardly ever settles.",
        (unknown(UnknownReason.REBALANCING),),
        Behaviour.FLAPPING,
    ),
    DemoScenario(
        "ledger",
        "ledger-entries",
        "It speaks the new group protocol (KIP-848) and keeps up.",
        (Status.OK,),
        group_protocol="consumer",
    ),
    DemoScenario(
        "live-dashboard",
        "clickstream",
        "It shows what happens now and never commits an offset, so the broker does not know how far it has read.",
        (unknown(UnknownReason.NO_COMMIT),),
        Behaviour.NOT_COMMITTING,
        members=1,
    ),
    DemoScenario(
        "recommendations",
        "web-sessions",
        "It reads a tenth of what arrives on a topic kept for a minute: records are deleted before it reads them.",
        (Status.LOSING_DATA,),
        Behaviour.THROTTLED,
        members=1,
        rate_per_second=6,
    ),
    DemoScenario(
        "loyalty-points",
        "orders",
        "It moved from orders-legacy to orders long ago and keeps up; its old commits are ghosts.",
        (Status.OK,),
        members=1,
        left_topic="orders-legacy",
    ),
)

#: The topics by name.
TOPIC: dict[str, DemoTopic] = {topic.name: topic for topic in TOPICS}
