"""Why nobody reads what stands still: the end of the sentence about it."""

from collections.abc import Sequence

from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.status import STALLED_AFTER_SECONDS
from lagwise.domain.subject import Subject
from lagwise.domain.vocabulary import REBALANCING_STATES, RUNNING, SIMPLE, Engine

#: Why nobody reads, by who keeps the offsets.
_NOBODY_WRITES = {
    SIMPLE: "its offsets are committed from outside, by a job, a tool or a mirror, which does not do so any more",
    Engine.SPARK: "its query has completed no batch, and whether it runs its checkpoint does not tell",
    Engine.SQL: "its offsets are kept in a database, where nobody writes them any more",
    Engine.FILES: "its offsets are kept in files, which nobody writes any more",
}


def why_nobody_reads(
    who: Subject,
    others: Sequence[PartitionsInStatus],
    members: int | None,
    state: str | None,
    group_type: str | None,
) -> str:
    """Why nobody reads; ``others`` are the group's other partitions."""
    if group_type == Engine.FLINK:
        if state is None:
            return "whether its Flink job runs, Flink does not tell"
        them = who.verb("it", "them")
        return f"its Flink job does not read {them}" if state == RUNNING else f"its Flink job does not run ({state})"
    if group_type in _NOBODY_WRITES:
        return _NOBODY_WRITES[group_type]
    is_owned = bool(who.parts) and all(p.owners for p in who.parts)
    now = f" ({who.owners} now)" if is_owned else ""
    if (is_owned or state in REBALANCING_STATES) and any(_is_read(p) for p in others):
        # A record that makes whoever reads it crash or hang looks like this, and the rebalances follow from it.
        it = who.verb("it", "them")
        return f"whoever owns {it} gets no further, while the group keeps rebalancing and gets on with others{now}"
    if state in REBALANCING_STATES:
        return f"the group is rebalancing ({state}) and does not get past it"
    if is_owned:
        return f"the group keeps rebalancing, and its members do not get to read {who.verb('it', 'them')}{now}"
    return f"no member owns {who.verb('it', 'them')}" if members else "the group has no members"


def _is_read(part: PartitionsInStatus) -> bool:
    """Whether the group surely gets on with them: somebody reads, and nothing is unread for long."""
    is_young = not part.lag_seconds_is_lower_bound and (part.lag_seconds or 0.0) < STALLED_AFTER_SECONDS
    return bool(part.consume_rate_per_second) and is_young
