"""A change that can make a group fall behind, and the words for it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ChangeKind(StrEnum):
    """What changed. Declared by how much each explains: of two at the same moment the first one is named."""

    #: Partitions that it reads have no leader: nobody can read them.
    LEADERS_LOST = "leaders_lost"
    #: Partitions that it reads had no leader for a while, and have one again.
    LEADERS_WERE_LOST = "leaders_were_lost"
    #: One partition gets a larger part of the records.
    HOT_PARTITION = "hot_partition"
    #: T2, the CPU time per message, rose.
    CPU_ROSE = "cpu_rose"
    #: T1, the time per message that handlers wait, rose.
    WAITING_ROSE = "waiting_rose"
    #: The time per message rose, and it is not known whether as waiting or as CPU time.
    WORK_ROSE = "work_rose"
    #: Handlers wait for records, though some are unread.
    FETCHING_SLOWED = "fetching_slowed"
    #: The group rebalances again and again.
    REBALANCES = "rebalances"
    #: There are fewer members.
    MEMBERS_LEFT = "members_left"
    #: More records are written.
    PRODUCE_RATE_ROSE = "produce_rate_rose"
    #: Fewer records are read, and nothing that was measured says why.
    CONSUME_RATE_FELL = "consume_rate_fell"
    #: Members were replaced.
    DEPLOYMENT = "deployment"
    #: A topic that it reads got more partitions.
    PARTITIONS_ADDED = "partitions_added"
    #: A setting of a topic that it reads was changed.
    SETTING_CHANGED = "setting_changed"
    #: Partitions of a topic that it reads changed leader.
    LEADERS_MOVED = "leaders_moved"
    #: The group already lagged when Lagwise first saw it: whatever made it lag came before, and cannot be told.
    ALREADY_BEHIND = "already_behind"


#: Such a change explains a backlog only together with another one: it is what may have caused that.
OCCASIONS = frozenset(
    {ChangeKind.DEPLOYMENT, ChangeKind.PARTITIONS_ADDED, ChangeKind.SETTING_CHANGED, ChangeKind.LEADERS_MOVED}
)
#: Tells less than what was measured of the work itself: named if there is nothing else.
LAST_RESORTS = frozenset({ChangeKind.CONSUME_RATE_FELL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that changed ``at`` a moment. ``sentence`` says what, with numbers, and ends with a period."""

    kind: ChangeKind
    at: datetime
    sentence: str
    #: What helps, or what to look at; None where the sentence says it.
    remedy: str | None = None
