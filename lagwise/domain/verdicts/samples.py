"""From raw samples to what they show: the lag of each, and what changed since the sample before.

Not every offset is a record. Each transaction ends in a marker that takes an offset and is delivered to nobody, and
compaction leaves gaps: a group that has read everything can stay behind the end by those for ever. ``next_record`` is
the offset of the next record after the committed one, where that was looked up.
"""

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array, Columns, before, is_first, last_index, taken

#: No transaction lasts longer: 15 minutes are the longest that a broker allows by default
#: (`transaction.max.timeout.ms`), and a minute is enough to end one that has timed out. One that was open for longer
#: hangs, until somebody aborts it.
TRANSACTION_HANGS_AFTER_SECONDS = 960.0
#: Two successive samples have a gap between them if they are farther apart than this many intervals, and than this.
GAP_INTERVALS = 3.0
GAP_SECONDS = 120.0


def gap_seconds(interval_seconds: float) -> float:
    """How far apart two successive samples may be and still count as a step of the history."""
    return max(GAP_SECONDS, GAP_INTERVALS * interval_seconds)


def is_held_back(committed: Array, high_watermark: Array, last_stable: Array, last_stable_seconds: Array) -> Array:
    """Whether a transaction that hangs keeps a group from reading, if it is a reader of committed records.

    The last stable offset is the first one of the oldest open transaction: that was begun before the record there was
    written, ``last_stable_seconds`` ago.
    """
    is_before = (
        (committed != NULL) & (last_stable != NULL) & (committed <= last_stable) & (last_stable < high_watermark)
    )
    return is_before & (last_stable_seconds >= TRANSACTION_HANGS_AFTER_SECONDS)


def lag_of(ends: Columns, is_held: Array | None = None) -> Array:
    """Unread records that still exist; null where that cannot be known: not committed, unreadable, or out of range.

    From the columns committed, next_record, log_start, high_watermark and last_stable. A reader of committed records
    stops at the last stable offset while a transaction is open, and the broker does not report who reads how. A group
    that has committed beyond it cannot be such a reader; every other one is taken for one, because lag must never be
    invented: records behind an open transaction count as soon as it ends. Behind one that hangs (``is_held``) they
    count: it does not end by itself.
    """
    committed, high, last_stable = ends["committed"], ends["high_watermark"], ends["last_stable"]
    is_waiting = (last_stable != NULL) & (committed <= last_stable)
    if is_held is not None:
        is_waiting &= ~is_held
    end = np.where(is_waiting, np.minimum(last_stable, high), high)
    is_known = (committed != NULL) & (ends["log_start"] != NULL) & (high != NULL) & (committed <= high)
    position = np.maximum(reads_from(ends), ends["log_start"])
    return np.where(is_known, np.maximum(np.where(is_known, end, 0) - np.where(is_known, position, 0), 0), NULL)


def reads_from(rows: Columns) -> Array:
    """The offset of the next record to read, as far as it was looked up."""
    return np.maximum(rows["committed"], rows["next_record"])


def known_samples(commits: Columns, ends: Columns, end_of: Array) -> dict[str, Array]:
    """Samples whose lag is known, with all that is compared, in the order of the commits.

    Args:
        commits: pair, at, committed, next_record.
        ends: log_start, high_watermark, last_stable, topic_id of topic-partitions.
        end_of: the row of ``ends`` that was read with each commit; -1 where there is none.
    """
    is_there = end_of >= 0
    commits, found = taken(commits, is_there), taken(ends, end_of[is_there])
    rows = {**commits, **{name: found[name] for name in ("log_start", "high_watermark", "last_stable", "topic_id")}}
    rows["lag"], rows["reads_from"] = lag_of(rows), reads_from(rows)
    return taken(rows, rows["lag"] != NULL)


def is_other_topic(topic_id: Array, first: Array) -> Array:
    """Whether each row's topic id differs from the last one known of the same series, each of which begins at a
    ``first`` row: a topic that is re-created is another log under the same name."""
    if not len(topic_id):
        return np.zeros(0, bool)
    last_known = last_index((topic_id >= 0) | first)
    earlier = before(topic_id[last_known])
    return ~first & (topic_id >= 0) & (earlier >= 0) & (earlier != topic_id)


def steps_of(samples: Columns, gap: Array) -> dict[str, Array]:
    """Each sample compared with the one before of its pair; samples in order of pair and time.

    A step is two successive samples with neither a gap (more than ``gap`` seconds, of each sample) nor another topic
    between them. Across a gap an offset can be seen to have moved, but not how often.

    What was lost: two numbers between which it lies. A sample knows where the group was when its commit was read, and
    where the log began right after that; between two samples the group went from the one commit to the other, and
    records were deleted, in an unknown order.

    * What the log start has passed beyond the last commit that was read before it, was deleted unread: at least.
    * What it has passed beyond the commit of the sample before may have been: at most. A group that finds its records
      deleted goes on with the oldest there is or at the end (``auto.offset.reset``), and by the next sample its commit
      has passed what it lost.

    Each step counts only what was deleted within it, so that steps add up.
    """
    committed, lag, at = samples["committed"], samples["lag"], samples["at"]
    first = is_first(samples["pair"])
    is_other = is_other_topic(samples["topic_id"], first)
    seconds = (at - before(at)) / 1e6
    is_step = ~first & ~is_other & (seconds <= gap)
    moved = ~first & (committed != before(committed))
    # With a log that went back itself a group had to.
    went_back = (
        is_step & (committed < before(committed)) & (samples["high_watermark"] >= before(samples["high_watermark"]))
    )
    log_start, reads = samples["log_start"], samples["reads_from"]
    is_alone = first | is_other
    was_missing = ~is_alone & (before(log_start) > before(reads))
    at_least = np.maximum(log_start - np.maximum(reads, np.where(was_missing, before(log_start), reads)), 0)
    at_most = np.maximum(at_least, log_start - np.maximum(before(log_start), before(reads)))
    return {
        "is_step": is_step,
        "dt": np.where(is_step, seconds, 0.0),
        "dlag": np.where(is_step, lag - before(lag), 0).astype(np.float64),
        "moved": moved,
        "began_with_lag": is_step & (before(lag) > 0),
        "went_back": went_back,
        "previous_committed": before(committed),
        "lost_at_least": at_least,
        "lost_at_most": np.where(is_alone, at_least, at_most),
    }
