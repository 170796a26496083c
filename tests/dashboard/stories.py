"""Groups and what befell them: the cast of the lakes that the dashboard is tested and pictured with."""

import math
import zlib
from dataclasses import dataclass
from typing import Any, Literal

from lagwise.domain.vocabulary import GroupState, Status

Shape = Literal["flat", "grows", "shrinks", "frozen", "sawtooth", "none"]

#: Names that try to be markup, code or layout.
HOSTILE_NAMES = (
    "<script>alert('x')</script>",
    ":red[blood] $a^2$ :material/home: **bold** :streamlit: -> [link](http://evil.example)",
    "../../etc/passwd'; drop table group_status; --",
    "\u202eevil\u2066 rtl مجموعة",
    "line\nbreak\ttab \x1b[31mred",
    "&lt;b&gt; `code` # heading | pipe ~~gone~~",
    "x" * 249,
    "\N{ROCKET}-orders-a",
    "\N{ROCKET}-orders-b",
)


@dataclass(frozen=True)
class Story:
    """One group: what it is now, and the shape of its lag before that. Times are seconds before now."""

    group: str
    status: Status
    shape: Shape
    sentence: str
    cluster: str = "prod"
    topic: str = "orders"
    partitions: int = 6
    members: int = 3
    state: str = GroupState.STABLE
    type: str = "classic"
    reason: str | None = None
    lag: int | None = 0
    lag_seconds: float | None = 0.0
    lower_bound: bool = False
    rate: float = 120.0
    since_seconds: float = 7200.0
    before: Status = Status.OK
    also: tuple[Status, ...] = ()
    seconds_to_catch_up: float | None = None
    seconds_to_loss: float | None = None
    seconds_to_loss_at_latest: float | None = None
    loss_cause: str = "deletion"
    records_lost: int = 0
    worst_partition: int = 0
    #: How many of its partitions share the status; the others are ok.
    hit: int | None = None
    rebalances_seconds_ago: tuple[float, ...] = ()
    retention_ms: int = 604_800_000
    #: Partitions of its topic with a replica that is not in sync, and without a leader.
    out_of_sync: int | None = None
    without_leader: int | None = None
    #: What else is worth knowing: kind, sentence, remedy.
    findings: tuple[tuple[str, str, str | None], ...] = ()

    def starts(self, ago: float) -> int:
        """How many starts of its first member lay ahead at that time."""
        return sum(r < ago for r in self.rebalances_seconds_ago)

    @property
    def frozen(self) -> bool:
        return self.shape == "frozen"

    def at(self, ago: float) -> dict[str, Any]:
        """Lag and rates ``ago`` seconds before now."""
        if self.shape == "none" or self.lag is None or self.lag_seconds is None:
            return {
                "lag": None,
                "lag_seconds": None,
                "lag_seconds_is_lower_bound": None,
                "produce_rate_per_second": None,
                "consume_rate_per_second": None,
            }
        share = self._share(ago)
        produced = self.rate * (1 + 0.08 * math.sin((ago + self._phase) / 200) + 0.03 * math.sin(ago / 31))
        return {
            "lag": int(self.lag * share),
            "lag_seconds": self.lag_seconds * share,
            "lag_seconds_is_lower_bound": self.lower_bound and ago <= self.since_seconds,
            "produce_rate_per_second": produced,
            "consume_rate_per_second": self._consumed(produced, ago),
        }

    def _share(self, ago: float) -> float:
        """Lag as a share of what it is now."""
        past = max(0.0, 1 - ago / self.since_seconds)
        match self.shape:
            case "grows" | "frozen":
                return past if past > 0 else 0.003 * (1 + math.sin(ago / 40))
            case "shrinks":
                return 1 + 3.0 * min(ago, self.since_seconds) / self.since_seconds
            case "sawtooth":
                return 0.4 + 0.6 * ((ago + self._phase) % 300) / 300
            case _:
                return 0.9 + 0.1 * math.sin((ago + self._phase) / 120)

    def _consumed(self, produced: float, ago: float) -> float:
        in_it = ago < self.since_seconds
        match self.shape:
            case "frozen" if in_it:
                return 0.0
            case "grows" if in_it:
                return produced * 0.72
            case "shrinks" if in_it:
                return produced * 1.9
            case _:
                return produced * (1 + 0.02 * math.sin(ago / 17))

    @property
    def _phase(self) -> float:
        return float(zlib.crc32(self.group.encode()) % 400)

    def status_at(self, ago: float) -> Status:
        return self.status if ago <= self.since_seconds else self.before

    def status_of(self, partition: int) -> Status:
        return self.status if self.is_hit(partition) else Status.OK

    def is_hit(self, partition: int) -> bool:
        hit = self.partitions if self.hit is None else self.hit
        return (partition - self.worst_partition) % max(1, self.partitions) < hit

    def lag_share_of(self, partition: int) -> float:
        """Share of the group's lag: nearly all of it is the partitions' that share its status, most the worst one's."""
        hit = self.partitions if self.hit is None else self.hit
        if not self.is_hit(partition):
            return 0.004 / (self.partitions - hit)
        uneven = 1 + 0.15 * math.sin(partition * 2.1)
        return (1.3 if partition == self.worst_partition else 0.9 * uneven) / hit

    def share_of(self, partition: int) -> float:
        """Share of the group's traffic."""
        return 1 / self.partitions * (1 + 0.2 * math.sin(partition * 2.1))

    def member(self, number: int) -> tuple[str, str]:
        """client.id and host of a member."""
        return f"{self.topic}-worker-{number}", f"/10.20.{zlib.crc32(self.group.encode()) % 200}.{number + 11}"

    def owner_of(self, partition: int) -> tuple[str, str] | None:
        return self.member(partition % self.members) if self.members else None


GROUPS_OF_THE_DEMO: tuple[Story, ...] = (
    Story(
        "payments-settlement",
        Status.LOSING_DATA,
        "grows",
        "18,240 records of 2 partitions were deleted by retention before they were read; payments.settled-3 "
        "is the worst.",
        topic="payments.settled",
        partitions=12,
        hit=2,
        worst_partition=3,
        lag=412_000,
        lag_seconds=5400.0,
        lower_bound=True,
        rate=310.0,
        since_seconds=2460,
        before=Status.AT_RISK,
        also=(Status.FALLING_BEHIND,),
        seconds_to_loss=0.0,
        records_lost=18_240,
        rebalances_seconds_ago=(2700.0,),
        findings=(
            (
                "dead_letters",
                "214 records were given up within 1 h: they went to payments.settled.DLT; it holds 3,120.",
                "Look at the newest of them for what could not be processed; they wait there until somebody replays "
                "them.",
            ),
            ("retries", "96 records wait in payments.settled-retry-0 to be retried.", None),
        ),
    ),
    Story(
        "clickstream-archive",
        Status.AT_RISK,
        "grows",
        "At today's rates the oldest unread record of clicks-7 will be deleted in 52 min: retention is 2 h, "
        "the lag 1 h 8 min.",
        topic="clicks",
        partitions=24,
        members=8,
        hit=5,
        worst_partition=7,
        lag=8_930_000,
        lag_seconds=4080.0,
        rate=2140.0,
        since_seconds=1500,
        before=Status.FALLING_BEHIND,
        also=(Status.FALLING_BEHIND,),
        seconds_to_loss=3120.0,
        seconds_to_loss_at_latest=6000.0,
        retention_ms=7_200_000,
        out_of_sync=1,
        without_leader=19,
    ),
    Story(
        "invoice-mailer",
        Status.STOPPED,
        "frozen",
        "6 partitions have lag and no member: the last consumer left 14 min ago, and nothing was committed since.",
        topic="invoices",
        members=0,
        state=GroupState.EMPTY,
        lag=10_240,
        lag_seconds=852.0,
        rate=12.0,
        since_seconds=852,
        seconds_to_loss=600_000.0,
        loss_cause="expiry",
        rebalances_seconds_ago=(870.0,),
    ),
    Story(
        "fraud-scoring",
        Status.STALLED,
        "frozen",
        "4 of 12 partitions have committed the same offset for 9 min 20 s although members own them; "
        "transactions-2 is the worst.",
        topic="transactions",
        partitions=12,
        members=4,
        hit=4,
        worst_partition=2,
        lag=31_800,
        lag_seconds=560.0,
        rate=57.0,
        since_seconds=560,
        type="consumer",
    ),
    Story(
        "search-reindexer",
        Status.REWOUND,
        "shrinks",
        "The committed offset of documents-0 went back by 2,400,000 records 21 min ago; 610,000 of them are "
        "still to be read again.",
        topic="documents",
        partitions=6,
        members=2,
        hit=1,
        lag=610_000,
        lag_seconds=19_800.0,
        lower_bound=True,
        rate=44.0,
        since_seconds=1260,
        seconds_to_catch_up=1150.0,
    ),
    Story(
        "orders-fulfilment",
        Status.FALLING_BEHIND,
        "grows",
        "The lag grows by 33.6 records/s (28 % of what is written), in the short and in the long window; "
        "orders-4 is the worst.",
        topic="orders",
        partitions=6,
        members=3,
        lag=64_100,
        lag_seconds=534.0,
        rate=120.0,
        worst_partition=4,
        since_seconds=1900,
        rebalances_seconds_ago=(3100.0, 1910.0),
    ),
    Story(
        "recommendations",
        Status.LAGGING,
        "flat",
        "The lag is steady, but the oldest unread record is 6 min 52 s old; the objective is 5 min.",
        topic="views",
        partitions=16,
        members=16,
        hit=3,
        lag=96_500,
        lag_seconds=412.0,
        rate=233.0,
        since_seconds=5100,
    ),
    Story(
        "session-cleaner",
        Status.UNKNOWN,
        "none",
        "The group is rebalancing, and has been for 48 s: who owns what is not settled.",
        topic="sessions",
        partitions=8,
        members=5,
        state=GroupState.PREPARING_REBALANCE,
        reason="rebalancing",
        lag=None,
        lag_seconds=None,
        since_seconds=48,
        rebalances_seconds_ago=tuple(48.0 + 170 * i for i in range(14)),
    ),
    Story(
        "feature-flags-audit",
        Status.UNKNOWN,
        "none",
        "Nothing has been committed yet on any of its 3 partitions.",
        topic="flags",
        partitions=3,
        members=1,
        reason="no_commit",
        lag=None,
        lag_seconds=None,
        since_seconds=3000,
    ),
    Story(
        "billing-export",
        Status.CATCHING_UP,
        "shrinks",
        "The lag shrinks by 88.2 records/s and will be gone in about 3 min 40 s.",
        topic="billing",
        partitions=6,
        lag=19_400,
        lag_seconds=198.0,
        rate=98.0,
        since_seconds=740,
        before=Status.STOPPED,
        seconds_to_catch_up=220.0,
        rebalances_seconds_ago=(748.0,),
    ),
    Story(
        "checkout",
        Status.OK,
        "sawtooth",
        "All 12 partitions are read as fast as they are written.",
        topic="carts",
        partitions=12,
        members=6,
        lag=140,
        lag_seconds=0.7,
        rate=201.0,
        since_seconds=86_000,
    ),
    Story(
        "email-notifications",
        Status.OK,
        "sawtooth",
        "All 6 partitions are read as fast as they are written.",
        topic="emails",
        lag=31,
        lag_seconds=1.2,
        rate=26.0,
        since_seconds=86_000,
    ),
    Story(
        "inventory-sync",
        Status.OK,
        "flat",
        "All 8 partitions are read as fast as they are written.",
        topic="stock",
        partitions=8,
        members=10,
        type="consumer",
        lag=88,
        lag_seconds=0.4,
        rate=180.0,
        since_seconds=86_000,
    ),
    Story(
        "audit-log",
        Status.OK,
        "flat",
        "Nothing is unread.",
        topic="audit",
        partitions=3,
        lag=0,
        lag_seconds=0.0,
        rate=0.4,
        since_seconds=86_000,
    ),
    Story(
        "legacy-reports",
        Status.GHOST,
        "none",
        "It reads none of the topics it once committed.",
        topic="reports.v1",
        partitions=2,
        members=1,
        lag=None,
        lag_seconds=None,
        since_seconds=500_000,
    ),
    Story(
        "console-consumer-41275",
        Status.UNKNOWN,
        "none",
        "Its committed offsets expired.",
        topic="orders",
        partitions=0,
        members=0,
        state=GroupState.EMPTY,
        reason="expired",
        lag=None,
        lag_seconds=None,
        since_seconds=400_000,
    ),
    Story(
        "etl-nightly",
        Status.STOPPED,
        "frozen",
        "2 partitions have lag and no member: the last consumer left 3 h ago.",
        cluster="staging",
        topic="exports",
        partitions=2,
        members=0,
        state=GroupState.EMPTY,
        lag=1_204,
        lag_seconds=10_920.0,
        rate=0.1,
        since_seconds=10_920,
    ),
    Story(
        "smoke-test",
        Status.OK,
        "flat",
        "Nothing is unread.",
        cluster="staging",
        topic="pings",
        partitions=1,
        members=1,
        lag=0,
        lag_seconds=0.0,
        rate=1.0,
        since_seconds=86_000,
    ),
)

#: More partitions than a heat map has rows: a few of them have nearly all the lag.
WIDE_GROUP = Story(
    "events-fanout",
    Status.OK,
    "grows",
    "All 300 partitions are read as fast as they are written.",
    topic="events",
    partitions=300,
    members=30,
    hit=5,
    worst_partition=211,
    lag=3_000_000,
    lag_seconds=20.0,
    rate=20_000.0,
    since_seconds=1500,
)

#: Groups with which nothing is wrong.
QUIET_GROUPS: tuple[Story, ...] = tuple(s for s in GROUPS_OF_THE_DEMO if s.status == Status.OK)

HOSTILE_GROUPS: tuple[Story, ...] = tuple(
    Story(
        name,
        Status.STALLED,
        "frozen",
        f"{name}: it has committed nothing for 9 min.",
        topic=name[:200],
        partitions=2,
        members=1,
        lag=1000 + i,
        lag_seconds=500.0 + i,
        since_seconds=540,
        rebalances_seconds_ago=(600.0,),
    )
    for i, name in enumerate(HOSTILE_NAMES)
)
