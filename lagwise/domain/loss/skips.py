"""Whether a group skipped unread records: somebody set its offsets forward, or its consumer sought to the end.

A committed offset that leaps to the end has skipped what lay between, or its reader was fast. Which of the two it was
cannot be seen. How fast the reader can be has often been: while it had a backlog it went as fast as it could. So a skip
is told only of those who were seen for minutes to leave a backlog, and who then passed all of it at once, many times as
fast as they were ever seen to go. Of a reader that always kept pace, or that hung, nobody knows what it can do: that it
catches up in a burst is no skip.

One whose next record was deleted has certainly been set anew: by ``auto.offset.reset`` to the beginning of the log, or
to its end, which is Kafka's default. If it then stands at about the end, and that is many times as far from the log
start as it was ever seen to read, it was the end. How fast it is must have been seen, but not that it was behind.
"""

from dataclasses import dataclass

#: For so long a reader must have been seen to go on and leave at least as much unread as it took …
SEEN_BEHIND_SECONDS = 300.0
#: … and to be so many times as fast as it ever was: a restart, or a dependency that recovers, makes a reader several
#: times as fast as before.
TIMES_AS_FAST = 10.0
#: So the event of a skip says in its cause that what was skipped begins with the log, not with the offset before.
FROM_LOG_START = "from the log start"
#: Commits come in lumps: a shorter time than this between two samples counts as this.
SHORTEST_STEP_SECONDS = 15.0
#: One poll of a consumer returns so many records by default (`max.poll.records`): a commit may take them at once.
RECORDS_OF_A_POLL = 500
#: About nothing is what was written since the sample before, or this share of the leap.
SHARE_LEFT = 0.01
#: Of the leap at least this share was there to be read at the sample before.
SHARE_UNREAD = 0.5


@dataclass(frozen=True, slots=True)
class SkippingReader:
    """What was seen of a group-partition until the sample before: ``fastest_per_second`` at any step, and for how long
    it went on and left at least as much unread as it took."""

    fastest_per_second: float = 0.0
    behind_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Leap:
    """A step of the committed offset forward (from the log start, where that had passed it): by how many records in
    which time, what was unread before and after it, and what was written meanwhile."""

    records: float
    seconds: float
    unread_before: float
    unread_after: float
    written: float


def is_skip(reader: SkippingReader, leap: Leap) -> bool:
    """Whether the leap is a skip."""
    return reader.behind_seconds >= SEEN_BEHIND_SECONDS and _is_too_fast_to_the_end(reader, leap)


def is_reset_to_end(reader: SkippingReader, leap: Leap) -> bool:
    """Whether one whose next record was deleted skipped what was left: the leap is from the log start."""
    return reader.fastest_per_second > 0 and _is_too_fast_to_the_end(reader, leap)


def _is_too_fast_to_the_end(reader: SkippingReader, leap: Leap) -> bool:
    plausible = TIMES_AS_FAST * reader.fastest_per_second * max(leap.seconds, SHORTEST_STEP_SECONDS)
    return (
        leap.records > max(plausible, RECORDS_OF_A_POLL)
        and leap.unread_before >= SHARE_UNREAD * leap.records
        and leap.unread_after <= max(leap.written, SHARE_LEFT * leap.records)
    )
