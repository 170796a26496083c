"""One rebalance, as the analysis knows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.vocabulary import RebalanceCause


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance, as a row of `raw/events` tells it. ``joined``, ``left`` and ``failed`` are "client (host)"."""

    at: datetime
    cause: RebalanceCause | None = None
    exact: bool = False
    joined: Sequence[str] = ()
    left: Sequence[str] = ()
    failed: Sequence[str] = ()
    members: int | None = None
    partitions_moved: int | None = None
    duration_seconds: float | None = None
    uncommitted_seconds: float | None = None
    silent_seconds: float | None = None
    session_timeout_seconds: float | None = None
    poll_interval_seconds: float | None = None
