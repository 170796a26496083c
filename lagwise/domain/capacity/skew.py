"""How unevenly a topic's traffic lies on its partitions: the share of the hottest, from days of history.

A share of what came in the last minutes is mostly chance: of twelve partitions that get the same, one record a second,
the hottest of five minutes seems to have an eighth in place of a twelfth, and on a quiet night all there was. So it is
taken over the busy hours of a week, which are what a plan is made for, and is not known of too few records.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

#: So far back it is looked.
HISTORY = timedelta(days=7)
#: Hours with at least this share of the busiest hour's rate are busy.
BUSY_SHARE = 0.5
#: The hottest partition's share is known when it had so many records itself. Were all partitions alike, the one that
#: seems the hottest would then still have less than a tenth more than its share (three to four standard deviations of a
#: count of a thousand, for up to some thousand partitions).
TELLING_RECORDS = 1_000


@dataclass(frozen=True, slots=True)
class Skew:
    """The share of the hottest partition in the records of the busy hours, 0 to 1."""

    hottest_share: float
    #: Records of all partitions in these hours: what it rests on.
    records: int
    #: How many hours these are, and the end of the last.
    hours: int
    until: datetime
