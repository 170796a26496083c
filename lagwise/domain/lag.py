"""What is unread, and what can no longer be read, in records."""

#: No transaction lasts longer: 15 minutes are the longest that a broker allows by default
#: (`transaction.max.timeout.ms`), and a minute is enough to end one that has timed out. One that was open for longer
#: hangs, until somebody aborts it.
TRANSACTION_HANGS_AFTER_SECONDS = 960.0


def is_held_back(
    committed: int | None, high_watermark: int | None, last_stable: int | None, last_stable_seconds: float | None
) -> bool:
    """Whether a transaction that hangs keeps this group from reading, if it is a reader of committed records.

    The last stable offset is the first one of the oldest open transaction: that was begun before the record there was
    written, ``last_stable_seconds`` ago (None: not known).
    """
    if committed is None or high_watermark is None or last_stable is None or last_stable_seconds is None:
        return False
    return committed <= last_stable < high_watermark and last_stable_seconds >= TRANSACTION_HANGS_AFTER_SECONDS


def readable_end(
    committed: int, high_watermark: int, last_stable: int | None, last_stable_seconds: float | None = None
) -> int:
    """The offset up to which this group can read.

    A reader of committed records stops at the last stable offset while a transaction is open, and the broker does not
    say who reads how. A group that has committed beyond the last stable offset cannot be such a reader; every other
    one is taken for one, because lag must never be invented: records behind an open transaction count as soon as the
    transaction ends, and behind one that hangs they count: it does not end by itself.
    """
    is_held = is_held_back(committed, high_watermark, last_stable, last_stable_seconds)
    if last_stable is not None and not is_held and committed <= last_stable:
        return min(last_stable, high_watermark)
    return high_watermark


def reads_from(committed: int, next_record: int | None) -> int:
    """The offset of the next record for a group that committed this offset, where it was looked up.

    Not every offset is a record. Each transaction ends in a marker that takes an offset and is delivered to nobody,
    and compaction leaves gaps: a group that has read everything can stay behind the end by those for ever.
    """
    return committed if next_record is None else max(committed, next_record)


def position(reads_from: int, log_start: int) -> int:
    """The offset of the oldest unread record that still exists: what was deleted cannot be read any more."""
    return max(reads_from, log_start)


def lag(reads_from: int, log_start: int, end: int) -> int:
    """Unread records that still exist. Never negative: a commit beyond the end is `out_of_range`, not negative lag."""
    return max(0, end - position(reads_from, log_start))


def records_lost(reads_from: int, log_start: int) -> int:
    """Records that were deleted before the group read them."""
    return max(0, log_start - reads_from)
