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


def position(committed: int, log_start: int) -> int:
    """The offset of the oldest unread record that still exists: what was deleted cannot be read any more."""
    return max(committed, log_start)


def lag(committed: int, log_start: int, end: int) -> int:
    """Unread records that still exist. Never negative: a commit beyond the end is `out_of_range`, not negative lag."""
    return max(0, end - position(committed, log_start))


def records_lost(committed: int, log_start: int) -> int:
    """Records that were deleted before the group read them."""
    return max(0, log_start - committed)
