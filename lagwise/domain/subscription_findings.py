"""What the members of a RocketMQ group subscribe to, and what it means where they do not subscribe alike."""

from collections.abc import Sequence
from typing import NamedTuple

from lagwise.domain.findings import Finding, FindingKind

#: The filter that lets all messages of a topic through.
ALL = "*"
#: So many are named.
_MOST_NAMED = 6


class Subscription(NamedTuple):
    """Which messages of a topic are wanted."""

    topic: str
    #: Tags or an SQL expression.
    filter: str
    #: Members that want it; None where a broker reported it, and no member did.
    members: int | None
    #: Members that reported their subscriptions; None likewise.
    of: int | None

    def __str__(self) -> str:
        return self.topic if self.filter == ALL else f"{self.topic} ({self.filter})"


def subscription_findings(subscriptions: Sequence[Subscription]) -> list[Finding]:
    """Members of a group that do not subscribe to the same. RocketMQ shares queues out among all of them, and a broker
    keeps one filter for a group and topic, that of the member it heard of last: messages are passed over that way."""
    apart = [s for s in subscriptions if s.members is not None and s.of is not None and s.members < s.of]
    if not apart:
        return []
    named = [f"{one} by {one.members} of {one.of}" for one in apart[:_MOST_NAMED]]
    more = f", and {len(apart) - _MOST_NAMED} more" if len(apart) > _MOST_NAMED else ""
    return [
        Finding(
            FindingKind.SUBSCRIPTIONS,
            f"Its members have different subscriptions: {', '.join(named)}{more}.",
            "Meanwhile messages are skipped unread: queues are assigned as if all members subscribed alike, and the "
            "broker keeps one filter for all of them. After a deployment this ends by itself; otherwise give each "
            "subscription a group of its own.",
        )
    ]
