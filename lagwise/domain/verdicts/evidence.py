"""What is known of each group-partition at its moment, by which it is judged.

The rows of all inputs belong together: row i of each speaks of case i.
"""

from dataclasses import dataclass

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array, Columns, seconds_between
from lagwise.domain.verdicts.logs import Jumps, SeenLogs, written_per_second
from lagwise.domain.verdicts.retention import longest_kept_seconds, rate_while_behind, seconds_to_overtaking
from lagwise.domain.verdicts.samples import is_held_back, lag_of, reads_from
from lagwise.domain.verdicts.windows import LOOKBACK_SECONDS

#: What is younger than this share of a limit the limit has not deleted: ages are told from samples, the limit goes by
#: timestamps that clients may have set a little earlier.
SHARE_OF_LIMIT = 0.5


@dataclass(frozen=True)
class Known:
    """What evidence is made of.

    Attributes:
        policy: as_of, interval_seconds, lag_objective_seconds, risk_horizon_seconds, minimum_span_seconds,
            offsets_retention_seconds: what verdicts go by.
        commits: committed, next_record, committed_at, owner (a number, -1 is none) in the latest sample.
        ends: log_start, high_watermark, last_stable of the log in the latest sample, and whether that ``has_row``.
        pace: see :func:`lagwise.domain.verdicts.windows.pace_of`.
        log: the history of the log.
        facts: see :func:`lagwise.domain.verdicts.ownership.group_facts`.
        topic_is_assigned: whether any partition of the topic is assigned to a member of the group.
        group_is_assigned: whether any partition at all is.
        limits: see :func:`lagwise.domain.verdicts.retention.limits_of`.
        previous: committed, committed_since, log_start, jump_records, jump_high_watermark of the round before, and
            whether its verdict ``was_recreated``, ``was_expired``, ``was_growing``, ``was_lagging``, ``was_stopped`` or
            ``was_stalled``; null where there was none.
    """

    policy: Columns
    commits: Columns
    ends: Columns
    pace: Columns
    log: SeenLogs
    facts: Columns
    topic_is_assigned: Array
    group_is_assigned: Array
    limits: Columns
    previous: Columns


def no_previous(count: int) -> dict[str, Array]:
    """What is known of a round before where there was none."""
    names = ("committed", "committed_since", "log_start", "jump_records", "jump_high_watermark")
    return {name: np.full(count, NULL) for name in names} | {
        name: np.zeros(count, bool)
        for name in ("was_recreated", "was_expired", "was_growing", "was_lagging", "was_stopped", "was_stalled")
    }


def evidence_of(known: Known) -> dict[str, Array]:
    """The evidence, one row a case. Times in seconds; see the comments at the columns."""
    policy, pace, log, facts, previous = known.policy, known.pace, known.log, known.facts, known.previous
    as_of = policy["as_of"]
    rows: dict[str, Array] = {**policy, **known.commits, **known.ends, **pace, **facts, **known.limits}
    committed, high = rows["committed"], rows["high_watermark"]

    # Age of the record at the last stable offset.
    last_stable = rows["last_stable"]
    stable_age, _ = log.age_of(last_stable, log.place_of(last_stable))
    rows["last_stable_seconds"] = np.where(last_stable == NULL, np.nan, stable_age)
    rows["ever_committed"] = (pace["moved_at"] != NULL) | (previous["committed"] != NULL) | previous["was_expired"]
    rows |= unread(rows)
    lag = rows["lag"]

    # Age of the oldest unread record, and whether it is only a lower bound: it is older than the history.
    position = np.maximum(rows["reads_from"], rows["log_start"])
    place = log.place_of(position)
    age, is_lower_bound = log.age_of(position, place)
    rows["lag_seconds"] = np.where(lag == 0, 0.0, np.where(lag > 0, age, np.nan))
    rows["lag_seconds_is_lower_bound"] = (lag > 0) & is_lower_bound
    rows |= _overtaking(known, log, position, place, rows)

    rows["produce_rate_per_second"], rows["steady_produce_rate_per_second"] = written_per_second(log, pace)
    rows["log_start_rate_per_second"] = log.log_start_rate()
    rows |= _jumps(log, rows, previous)

    # When the committed offset was first seen where it is, at the latest.
    rows["committed_since"] = _committed_since(rows, previous)
    rows["unmoved_seconds"] = seconds_between(rows["committed_since"], as_of)
    # That nothing could be read is no sign of life.
    rows["drained_seconds"] = np.where(rows["is_held_back"], np.nan, seconds_between(pace["drained_at"], as_of))
    rows["rewound_seconds"] = seconds_between(pace["rewound_at"], as_of)
    rows |= cadence_of(rows)

    # That nothing is committed is believed only of a partition that could be read, or is not watched any more: Kafka
    # hides the commits on a topic that the collector may not describe as if there were none.
    has_ends = (high != NULL) & (rows["log_start"] != NULL)
    rows["is_readable"] = (facts["error"] < 0) & (has_ends | ((committed == NULL) & ~rows["has_row"]))
    same_commit = (committed != NULL) & (previous["committed"] == committed)
    is_older = (log.recreated_at != NULL) & (rows["committed_since"] < log.recreated_at)
    # The topic was deleted and created again after the commit.
    rows["is_recreated"] = is_older | (same_commit & previous["was_recreated"])
    rows["is_deleted_by_request"] = is_deleted_by_request(log, known.limits)
    rows["earlier_log_start"] = log.earlier_log_start()
    rows["has_left_topic"] = has_left_topic(facts["is_reading"], known.topic_is_assigned, known.group_is_assigned)
    rows["checkpoint_age_seconds"] = seconds_between(facts["checkpointed_at"], as_of)
    rows["seconds_to_expiry"] = seconds_to_expiry(rows)
    # Whether it only waits for its turn is told from all that its owner has: see ``turns``.
    rows["awaits_turn"] = np.zeros(len(as_of), bool)
    rows["is_unread"] = lag > 0
    rows["seen_moving_at"] = np.where(pace["was_seen_moving"], pace["moved_at"], NULL)
    # What the round before remembers.
    rows["is_where_it_was"] = same_commit
    rows |= {name: previous[name] for name in ("was_growing", "was_lagging", "was_stopped", "was_stalled")}
    return rows


def unread(rows: Columns) -> dict[str, Array]:
    """What is unread, from the offsets of the latest sample, its owner, ``last_stable_seconds`` and whether it was
    ``ever_committed``."""
    committed, high = rows["committed"], rows["high_watermark"]
    is_held = is_held_back(committed, high, rows["last_stable"], rows["last_stable_seconds"])
    is_empty = (high != NULL) & (rows["log_start"] == high)
    has_nothing_to_commit = is_empty & (rows["owner"] >= 0) & (committed == NULL) & ~rows["ever_committed"]
    return {
        "is_held_back": is_held,
        # Nothing is committed because there never was anything to read: somebody owns the partition, and it holds no
        # record. Clients built on librdkafka commit nothing there.
        "has_nothing_to_commit": has_nothing_to_commit,
        # Unread records that still exist; null is not known.
        "lag": np.where(has_nothing_to_commit, 0, lag_of(rows, is_held)),
        "reads_from": reads_from(rows),
    }


def has_left_topic(is_reading: Array, topic_is_assigned: Array, group_is_assigned: Array) -> Array:
    """Whether a stable group, or a job that runs, is assigned other topics, and not this one."""
    return is_reading & group_is_assigned & ~topic_is_assigned


def _overtaking(known: Known, log: SeenLogs, position: Array, place: Array, rows: Columns) -> dict[str, Array]:
    """Time until retention deletes the first record that the group does not reach in time, if segments are deleted as
    early, or as late, as they may be."""
    age = np.where(rows["lag"] > 0, rows["lag_seconds"], np.nan)
    reads = rate_while_behind(rows["consume_rate_per_second"], rows["span_seconds"], age)
    kept = {
        "overtaken_seconds": known.limits["retention_seconds"],
        "overtaken_at_latest_seconds": longest_kept_seconds(known.limits),
    }
    return {n: seconds_to_overtaking(log, position, place, age, reads, seconds) for n, seconds in kept.items()}


def _jumps(log: SeenLogs, rows: Columns, previous: Columns) -> dict[str, Array]:
    """The jumps of the log start. Segments may last for longer than the history: where it has not jumped since the
    round before, in the same log, that one's are still the last."""
    seen = log.jumps(rows["retention_is_by_size"])
    stands = (rows["log_start"] != NULL) & (rows["log_start"] == previous["log_start"]) & ~log.was_reset
    kept = stands & (seen.records == NULL)
    return {
        "jump_records": np.where(kept, previous["jump_records"], seen.records),
        "jump_high_watermark": np.where(kept, previous["jump_high_watermark"], seen.high_watermark),
    }


def jumps_in(rows: Columns) -> Jumps:
    """The jumps of the log start in evidence."""
    return Jumps(rows["jump_records"], rows["jump_high_watermark"])


def _committed_since(rows: Columns, previous: Columns) -> Array:
    moved_at, before = rows["moved_at"], previous["committed_since"]
    same_commit = (rows["committed"] != NULL) & (previous["committed"] == rows["committed"])
    is_older = same_commit & ~rows["was_seen_moving"] & (before != NULL)
    earliest = np.where(moved_at == NULL, before, np.minimum(moved_at, before))
    since = np.where(is_older, earliest, moved_at)
    return np.where(since == NULL, rows["as_of"], since)


def cadence_of(rows: Columns) -> dict[str, Array]:
    """For how long the offset has stood still while there was something to read, and the usual time between commits.

    It stands still since it moved, since there was last nothing to read, and since the oldest unread record was
    written, whichever came last. The age alone would not do: records of a transaction are old when they can first be
    read. One that is a lower bound says nothing: the record was there before the log's history begins, which it does
    anew whenever the log goes back.

    The standstill that still lasts is left out of the cadence: a group that has stopped would otherwise be given ever
    more time.
    """
    age = np.where(rows["lag_seconds_is_lower_bound"], np.nan, np.nan_to_num(rows["lag_seconds"]))
    stands = np.fmin(np.fmin(rows["unmoved_seconds"], age), rows["drained_seconds"])
    stands = np.where(rows["lag"] > 0, stands, 0.0)
    moves = rows["moves"]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(moves > 0, np.maximum(0.0, rows["backlog_seconds"] - stands) / moves, np.nan)
    return {
        "standstill_seconds": stands,
        "commit_cadence_seconds": np.fmax(mean, rows["usual_pause_seconds"]),
    }


def is_deleted_by_request(log: SeenLogs, limits: Columns) -> Array:
    """Whether a client had the log's oldest records deleted (DeleteRecords): no limit that is known can have, because
    the newest of them was too young, or because there is none. By how much a limit of size was exceeded nobody knows;
    nor does anybody know the age of what was there before the history."""
    retention = limits["retention_seconds"]
    is_young = log.deleted_seconds() < np.minimum(SHARE_OF_LIMIT * retention, LOOKBACK_SECONDS)
    by_time_only = limits["retention_is_known"] & ~limits["retention_is_by_size"]
    return log.has_history & by_time_only & (np.isnan(retention) | is_young)


def seconds_to_expiry(rows: Columns) -> Array:
    """Time until the broker forgets the committed offsets of a group without members (KIP-211); NaN is never.

    They are kept for ``offsets.retention.minutes`` after the group became empty and after they were committed. When a
    group was empty before anyone looked, its commits say since when it can have been. Of a group that was never one
    (``simple``: Flink, a script) the time of the last commit counts, unchanged or not: samples do not show that, so
    that nothing is told where `__consumer_offsets` is not read. What a share group has read does not expire.
    """
    committed_at = rows["committed_at"]
    last_commit = np.where(committed_at == NULL, rows["committed_since"], committed_at)
    of_group = np.maximum(last_commit, rows["empty_since"])
    counted_from = np.where(rows["is_without_protocol"], committed_at, of_group)
    left = rows["offsets_retention_seconds"] - seconds_between(counted_from, rows["as_of"])
    return np.where(rows["is_empty"] & ~rows["is_share"], np.maximum(left, 0.0), np.nan)
