"""One rebalance, as the analysis knows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.vocabulary import RebalanceCause


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance, as a row of `raw/events` describes it. Clients are "client (host)"."""

    #: When it ended, or was seen.
    at: datetime
    #: None where nothing shows it.
    cause: RebalanceCause | None = None
    #: Read from the offsets topic; otherwise concluded from two samples.
    exact: bool = False
    #: Clients that joined with it.
    joined: Sequence[str] = ()
    #: Clients that left with it, those that failed included.
    left: Sequence[str] = ()
    #: Clients that the group removed.
    failed: Sequence[str] = ()
    #: Members after it; None where not known, as every number below.
    members: int | None = None
    #: Partitions that changed owners.
    partitions_moved: int | None = None
    #: How long it took.
    duration_seconds: float | None = None
    #: Time since the last commit on the partitions that changed owners.
    uncommitted_seconds: float | None = None
    #: For how long the members that are gone had committed nothing: the longest.
    silent_seconds: float | None = None
    #: session.timeout.ms of the members that are gone.
    session_timeout_seconds: float | None = None
    #: max.poll.interval.ms of the members that are gone.
    poll_interval_seconds: float | None = None
