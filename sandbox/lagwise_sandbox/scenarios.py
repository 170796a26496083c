"""The demo's cast: topics of a shop, and one consumer group for each thing that can happen to one.

Importable without confluent-kafka: the demo compares what it shows with ``expected`` here.
"""

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
class Topic:
    """A topic and what is written to it: records per second after ``preloaded`` records at the start."""

    name: str
    partitions: int
    rate_per_second: float
    preloaded: int = 0
    retention_seconds: float | None = None
    segment_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One consumer group: what it does, what it should be shown as at the end of two minutes.

    ``expected`` are status words, an unknown one with its reason (``unknown:no_commit``): any of them is right.
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

    def agrees(self, status: str, reason: str | None = None) -> bool:
        """Whether a shown status (with its reason, where it is ``unknown``) is an expected one."""
        shown = unknown(reason) if status == Status.UNKNOWN and reason else status
        return shown in self.expected


def unknown(reason: str) -> str:
    """How an unknown status is written with its reason."""
    return f"{Status.UNKNOWN}:{reason}"


#: When the stalling group stops reading, and when the killed one dies, in seconds after the members' start.
STALLS_AFTER_SECONDS = 10.0
KILLED_AFTER_SECONDS = 15.0
#: How long the slow member of the flapping group takes to give its partitions back, at least and at most: irregular, so
#: that no sampling interval falls into step with it. And for how long the other member stays.
SLOW_REVOKE_SECONDS = (3.0, 7.0)
FLAPPING_STAY_SECONDS = 0.2

TOPICS: tuple[Topic, ...] = (
    Topic("orders", partitions=6, rate_per_second=180),
    Topic("orders-legacy", partitions=2, rate_per_second=0, preloaded=400),
    Topic("product-changes", partitions=4, rate_per_second=120),
    Topic("payments", partitions=3, rate_per_second=90),
    Topic("shipments", partitions=3, rate_per_second=60),
    # 60 records per second are gained on this backlog: it lasts for half an hour.
    Topic("invoices", partitions=3, rate_per_second=40, preloaded=120_000),
    Topic("email-requests", partitions=2, rate_per_second=40),
    Topic("stock-levels", partitions=2, rate_per_second=20),
    Topic("ledger-entries", partitions=4, rate_per_second=60),
    Topic("clickstream", partitions=3, rate_per_second=60),
    Topic("web-sessions", partitions=2, rate_per_second=60, retention_seconds=60, segment_seconds=5),
)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "billing",
        "orders",
        "Two instances read every order within a second or two.",
        (Status.OK,),
    ),
    Scenario(
        "search-indexer",
        "product-changes",
        "The search index takes half as many changes as the shop makes, so the backlog grows steadily.",
        (Status.FALLING_BEHIND,),
        Behaviour.THROTTLED,
        rate_per_second=60,
    ),
    Scenario(
        "fraud-check",
        "payments",
        "Its scoring service hangs: both instances stay in the group, but nothing is read or committed any more.",
        (Status.STALLED,),
        Behaviour.STALLING,
    ),
    Scenario(
        "warehouse-sync",
        "shipments",
        "Its only process was killed without a goodbye, and nobody reads the shipments any more.",
        (Status.STOPPED,),
        Behaviour.KILLED,
        members=1,
    ),
    Scenario(
        "invoice-archiver",
        "invoices",
        "It was off for the night and now works through the backlog, more than twice as fast as invoices arrive.",
        (Status.CATCHING_UP,),
        Behaviour.THROTTLED,
        members=1,
        rate_per_second=100,
    ),
    Scenario(
        "email-sender",
        "email-requests",
        "Four instances share two partitions: it keeps up, and two of the four have nothing to do.",
        (Status.OK,),
        members=4,
    ),
    Scenario(
        "stock-cache",
        "stock-levels",
        "An autoscaler adds and removes an instance all the time, so the group hardly ever settles.",
        (unknown(UnknownReason.REBALANCING),),
        Behaviour.FLAPPING,
    ),
    Scenario(
        "ledger",
        "ledger-entries",
        "It speaks the new group protocol (KIP-848) and keeps up.",
        (Status.OK,),
        group_protocol="consumer",
    ),
    Scenario(
        "live-dashboard",
        "clickstream",
        "It shows what happens now and never commits an offset: nobody can say from the broker how far it is.",
        (unknown(UnknownReason.NO_COMMIT),),
        Behaviour.NOT_COMMITTING,
        members=1,
    ),
    Scenario(
        "recommendations",
        "web-sessions",
        "It reads a tenth of what arrives on a topic kept for a minute: records are deleted before it reads them.",
        (Status.LOSING_DATA,),
        Behaviour.THROTTLED,
        members=1,
        rate_per_second=6,
    ),
    Scenario(
        "loyalty-points",
        "orders",
        "It moved from orders-legacy to orders long ago and keeps up; its old commits are ghosts.",
        (Status.OK,),
        members=1,
        left_topic="orders-legacy",
    ),
)

#: The topics by name.
TOPIC: dict[str, Topic] = {topic.name: topic for topic in TOPICS}
