"""What is unread, and what can no longer be read, in records."""


def readable_end(committed: int, high_watermark: int, last_stable: int | None) -> int:
    """The offset up to which this group can read.

    A reader of committed records stops at the last stable offset while a transaction is open, and the broker does not
    say who reads how. A group that has committed beyond the last stable offset cannot be such a reader; every other
    one is taken for one, because lag must never be invented: records behind an open transaction count as soon as the
    transaction ends.
    """
    if last_stable is not None and committed <= last_stable:
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
