"""The topics and groups of the made-up cluster: what arrives, and what the consumers can do."""

from dataclasses import dataclass

#: Name of the cluster, on every page and in every report.
CLUSTER_NAME = "made-up"
#: What pages and reports say about it.
NOTE = (
    "All of its numbers are invented. The demo makes up its samples, five weeks of them (fifteen days of what groups "
    "read); the rest is computed as for any cluster."
)


@dataclass(frozen=True, slots=True)
class ProbedWork:
    """What the consumers of a group measure of themselves: time per message, and the threads and cores of a process."""

    t1_seconds: float
    t2_seconds: float
    threads: int
    cores: float


@dataclass(frozen=True, slots=True)
class MadeUpGroup:
    """A topic and the group that reads it, each member on a node of its own.

    Rates are of the whole topic or group. ``peak_per_second`` is what arrives in the busiest hour of a weekday at the
    end of the past, ``growth_per_day`` the share of it by which that then rises each day, less and less so.
    ``is_stopped_sometimes``: three times a week the group is stopped for a while, and then works through a backlog.
    ``has_bursts``: every now and then a campaign sends many times as much for some minutes.
    """

    group: str
    topic: str
    story: str
    partitions: int
    members: int
    peak_per_second: float
    capacity_per_second: float
    growth_per_day: float = 0.0
    is_stopped_sometimes: bool = False
    has_bursts: bool = False
    probed: ProbedWork | None = None


GROUPS: tuple[MadeUpGroup, ...] = (
    MadeUpGroup(
        "parcel-tracking",
        "parcel-scans",
        "It has room to spare, also on the busiest day of the week.",
        partitions=2,
        members=2,
        peak_per_second=400.0,
        capacity_per_second=900.0,
        is_stopped_sometimes=True,
    ),
    MadeUpGroup(
        "checkout",
        "orders-placed",
        "The shop grows: in some weeks these consumers will be too few.",
        partitions=4,
        members=2,
        peak_per_second=300.0,
        capacity_per_second=493.0,
        growth_per_day=0.006,
        is_stopped_sometimes=True,
    ),
    MadeUpGroup(
        "audit-log",
        "access-log",
        "It never had a backlog, so nobody knows what it could do.",
        partitions=1,
        members=1,
        peak_per_second=80.0,
        capacity_per_second=4_000.0,
    ),
    MadeUpGroup(
        "risk-scoring",
        "card-payments",
        "Its consumers measure T1 and T2: they mostly wait, so more threads would do the work of more nodes.",
        partitions=4,
        members=2,
        peak_per_second=170.0,
        capacity_per_second=350.0,
        probed=ProbedWork(t1_seconds=0.040, t2_seconds=0.006, threads=8, cores=2.0),
    ),
    MadeUpGroup(
        "push-sender",
        "push-requests",
        "Campaigns send more than it can do for some minutes, and it still keeps its objective of five minutes.",
        partitions=4,
        members=2,
        peak_per_second=120.0,
        capacity_per_second=300.0,
        is_stopped_sometimes=True,
        has_bursts=True,
    ),
    MadeUpGroup(
        "invoice-pdf",
        "invoices-due",
        "It falls behind at the peak of each working day, and catches up in the afternoon.",
        partitions=4,
        members=2,
        peak_per_second=200.0,
        capacity_per_second=172.0,
    ),
)
