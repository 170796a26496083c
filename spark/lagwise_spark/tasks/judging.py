"""A round on a range of topic-partitions: from raw samples and the history to verdicts and finished minutes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.buckets import HOUR, MINUTE
from lagwise.domain.verdicts.columns import NEVER, NULL, Array, Columns, start_of, taken
from lagwise.domain.verdicts.evidence import Known, evidence_of
from lagwise.domain.verdicts.logs import Logs, seen_logs
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.rollup import NUMBERS
from lagwise.domain.verdicts.status import HELD, REASONS, STATUSES, judge, stalled_after_seconds
from lagwise.domain.verdicts.turns import ABSENCE_SECONDS
from lagwise.domain.verdicts.windows import pace_of, whole_hours_until
from lagwise.domain.vocabulary import Status, UnknownReason
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise_spark.tasks.arrow_columns import (
    TIMESTAMP,
    arrow_of,
    lists_with,
    places_among,
    places_in,
)
from lagwise_spark.tasks.inputs import (
    Moment,
    RoundInputs,
    assigned_at,
    clients_at,
    facts_at,
    limits_at,
    objectives_at,
    picked_at,
)
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.minutes import (
    OF_COMMITS,
    OF_WATERMARKS,
    Spans,
    finished,
    in_order,
    open_buckets,
    open_logs,
)
from lagwise_spark.tasks.range_rows import (
    LOG_COLUMNS,
    OF_LOG,
    OF_PAIR,
    Keys,
    RangeReader,
    joined_logs,
    logs_of,
)

#: The name of what tells of the files of `partition_status` (:data:`lagwise.tables.written_files.WRITTEN`).
STATUS_FILES = "status_files"
#: The name of the rows of which verdicts on groups are made …
VERDICTS = "verdicts"
_STANDS = ("stopped", "stalled")
_OF_STATUS = (
    "cluster", "group", "topic", "partition", "as_of", "status", "reason", "loss_cause", "owner", "client_id", "host",
    *NUMBERS,
)  # fmt: skip
_BESIDE = (
    *((name, pa.bool_()) for name in _STANDS),
    ("previous_status", pa.string()),
    ("standstill_seconds", pa.float64()),
    ("absence_seconds", pa.float64()),
    ("seen_moving_at", TIMESTAMP),
    ("is_unread", pa.bool_()),
)
#: … and their columns: some of `partition_status`, whether its owner has stopped, or stalls, the status before, and
#: what tells whether others of its owner wait for their turn (:func:`lagwise.domain.verdicts.turns.awaits_turn`).
VERDICT_ROWS = pa.schema([*(PARTITION_STATUS.arrow.field(name) for name in _OF_STATUS), *_BESIDE])
#: The names of the rows, in the same order, of what is not the same if it hangs, and if it only waits for its turn.
#: Which it does, takes all that its owner has to tell, of which a range has some.
IF_IT_HANGS, IF_IN_TURN = "if_it_hangs", "if_in_turn"
#: Their columns: all of `partition_status`, and what is asked of them.
UNDECIDED_ROWS = pa.schema(
    [*PARTITION_STATUS.arrow, *_BESIDE, ("interval_seconds", pa.float64()), ("stalled_after_seconds", pa.float64())]
)


def judged_range(inputs: RoundInputs, files: LakeFiles, within: KeyRange) -> Iterator[tuple[str, pa.Table]]:
    """What a round makes of a range, as rows, each with the name of their table: the finished minutes, the data files
    of `partition_status` that were written (:data:`STATUS_FILES`), and what of it the verdicts on groups need
    (:data:`VERDICTS`); all of it of what is undecided (:data:`IF_IT_HANGS`, :data:`IF_IN_TURN`), which is not
    written."""
    known = _read(inputs, files, within)
    if not len(known.keys.logs["topic"]):
        return
    made = open_buckets(known.keys, known.commits, known.ends, known.spans)
    buckets = in_order([*known.history, (made, None)])
    logs = joined_logs([known.history_logs, open_logs(known.keys, known.ends, known.spans)])
    yield from finished(known.keys, known.spans, buckets, logs)
    rows, is_undecided, if_in_turn = _verdicts(known, logs, buckets)
    if is_undecided.any():
        yield IF_IT_HANGS, rows.filter(pa.array(is_undecided))
        yield IF_IN_TURN, if_in_turn
        rows = rows.filter(pa.array(~is_undecided))
    if rows.num_rows:
        yield STATUS_FILES, files.write(PARTITION_STATUS, rows)
        yield VERDICTS, rows.select(VERDICT_ROWS.names)


@dataclass(frozen=True)
class _Known:
    """The rows of a range as columns.

    Attributes:
        moments: by the number of their cluster.
        commits: raw samples, those of the open minutes and of the gap before; ``ends`` likewise.
        history: tables of buckets, and which of these lie before the open minutes.
        history_logs: of the time before the open minutes.
    """

    inputs: RoundInputs
    moments: Columns
    spans: Spans
    keys: Keys
    commits: Columns
    ends: Columns
    history: Sequence[tuple[Columns, Array]]
    history_logs: Logs
    days: Columns
    previous: Columns


def _read(inputs: RoundInputs, files: LakeFiles, within: KeyRange) -> _Known:
    reader = RangeReader(files, within, [moment.cluster for moment in inputs.moments])
    commits = reader.read(COMMITS, (*OF_COMMITS, "committed_at", "owner"), inputs.sample_ids)
    ends = reader.read(WATERMARKS, (*OF_WATERMARKS, "leader"), inputs.sample_ids)
    minutes, fives = (reader.buckets(table) for table in (MINUTES, FIVE_MINUTES))
    days = reader.read(DAYS, [column.name for column in DAYS.columns])
    previous_rows = reader.rows(PARTITION_STATUS, (*_PREVIOUS, "status", "reason", "reasons"))
    previous = reader.numbered(previous_rows, PARTITION_STATUS, _PREVIOUS)
    for name, words in (("status", STATUSES), ("reason", REASONS)):
        previous[name] = places_among(previous_rows[name], [str(word) for word in words])
    previous |= {name: lists_with(previous_rows["reasons"], str(status)) for name, status in _REMEMBERED.items()}
    log_rows = [reader.rows(table, (*OF_LOG, *LOG_COLUMNS)) for table in (WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES)]
    log_rows.append(inputs.older)
    fine, coarse, older = (reader.numbered(rows, WATERMARK_MINUTES, (*OF_LOG, *LOG_COLUMNS[:-1])) for rows in log_rows)

    moments = _columns_of(inputs.moments)
    as_of, fine_from, open_from = (moments[name] for name in ("as_of", "fine_from", "open_from"))

    def is_fine(rows: Columns) -> Array:
        return (rows["minute"] >= fine_from[rows["cluster"]]) & (rows["minute"] < open_from[rows["cluster"]])

    def is_coarse(rows: Columns) -> Array:
        reach = as_of[rows["cluster"]] - _REACH
        return (rows["minute"] < fine_from[rows["cluster"]]) & (rows["minute"] >= reach)

    is_older = older["minute"] < as_of[older["cluster"]] - _REACH
    latest = [reader.names["sample_id"].number(moment.sample_id) for moment in inputs.moments]
    keys = reader.keys()
    return _Known(
        inputs=inputs,
        moments=moments,
        spans=Spans(open_from, start_of(MINUTE, as_of), moments["gap_seconds"]),
        keys=keys,
        commits=commits | {"is_latest": np.isin(commits["sample_id"], latest)},
        ends=ends | {"is_latest": np.isin(ends["sample_id"], latest)},
        history=[(minutes, is_fine(minutes)), (fives, is_coarse(fives))],
        history_logs=logs_of(
            [
                (rows, arrow, mask)
                for rows, arrow, mask in zip(
                    (fine, coarse, older), log_rows, (is_fine(fine), is_coarse(coarse), is_older), strict=True
                )
            ]
        ),
        days=days,
        previous=previous,
    )


_PREVIOUS = (
    *OF_PAIR, "committed", "committed_since", "log_start", "jump_records", "jump_high_watermark", "since",
)  # fmt: skip
#: What the verdict of the round before says is remembered.
_REMEMBERED = {
    "was_growing": Status.FALLING_BEHIND,
    "was_lagging": Status.LAGGING,
    "was_stopped": Status.STOPPED,
    "was_stalled": Status.STALLED,
}
#: How far back from the moment buckets are looked at: the look-back, and to where `days` ends.
_REACH = HOUR + 10 * MINUTE


def _columns_of(moments: Sequence[Moment]) -> dict[str, Array]:
    return {
        f.name: np.array([getattr(m, f.name) for m in moments], np.int64 if f.type is int else np.float64)
        for f in fields(Moment)
        if f.type in (int, float)
    }


def _verdicts(known: _Known, logs: Logs, buckets: Columns) -> tuple[pa.Table, Array, pa.Table]:
    """Rows of :data:`UNDECIDED_ROWS` as they are if what stands still hangs, which of them are not the same if it waits
    for its turn, and what these are then."""
    latest_commits, latest_ends = (taken(rows, rows["is_latest"]) for rows in (known.commits, known.ends))
    pair = np.unique(np.concatenate([latest_commits["pair"], buckets["pair"]]))
    log_number, group = known.keys.pairs["log"][pair], known.keys.pairs["group"][pair]
    cluster, topic = known.keys.logs["cluster"][log_number], known.keys.logs["topic"][log_number]
    moments = {name: values[cluster] for name, values in known.moments.items()}
    as_of = moments["as_of"]
    log = seen_logs(logs, log_number, as_of)
    cases = {
        "pair": pair,
        "as_of": as_of,
        "recreated_at": log.recreated_at,
        "interval_seconds": moments["interval_seconds"],
    }
    pace = pace_of(buckets, _days_at(known.days, cases), cases)
    facts = facts_at(known.inputs, known.keys.names, cluster, group)
    on_topic, on_any = assigned_at(known.inputs, known.keys.names, cluster, group, topic)
    commit, end = places_in(latest_commits["pair"], pair), places_in(latest_ends["log"], log_number)
    before = places_in(known.previous["pair"], pair)
    previous = {
        name: picked_at(known.previous[name], before, NULL)
        for name in ("committed", "committed_since", "log_start", "jump_records", "jump_high_watermark", "since")
    }
    was, why = (picked_at(known.previous[name], before, -1) for name in ("status", "reason"))
    policy = {
        "as_of": as_of,
        **{n: v for n, v in moments.items() if n not in ("as_of", "open_from", "fine_from", "gap_seconds")},
    }
    evidence = evidence_of(
        Known(
            policy=policy
            | {"lag_objective_seconds": objectives_at(known.inputs, known.keys.names, cluster, group, policy)},
            commits={
                **{n: picked_at(latest_commits[n], commit, NULL) for n in ("committed", "next_record", "committed_at")},
                "owner": picked_at(latest_commits["owner"], commit, -1),
            },
            ends={
                **{
                    n: picked_at(latest_ends[n], end, NULL)
                    for n in ("log_start", "high_watermark", "last_stable", "leader")
                },
                "has_row": end >= 0,
            },
            pace=pace,
            log=log,
            facts=facts,
            topic_is_assigned=on_topic,
            group_is_assigned=on_any,
            limits=limits_at(known.inputs, known.keys.names, cluster, topic),
            previous=previous
            | {
                "was_recreated": why == REASONS.index(UnknownReason.RECREATED),
                "was_expired": why == REASONS.index(UnknownReason.EXPIRED),
                **{name: picked_at(known.previous[name], before, False) for name in _REMEMBERED},
            },
        )
    )
    evidence |= {"pair": pair, "was": was, "was_since": previous["since"]}
    evidence["stalled_after_seconds"] = stalled_after_seconds(evidence)
    if_it_hangs = judge(evidence)
    may_wait = (evidence["owner"] >= 0) & (
        if_it_hangs["stopped"] | if_it_hangs["stalled"] | (evidence["standstill_seconds"] >= ABSENCE_SECONDS)
    )
    waiting = {name: values[..., may_wait] for name, values in evidence.items()}
    waiting["awaits_turn"] = np.ones(len(waiting["pair"]), bool)
    if_in_turn = judge(waiting)
    differs = _differ({name: values[..., may_wait] for name, values in if_it_hangs.items()}, if_in_turn)
    is_undecided = np.zeros(len(pair), bool)
    is_undecided[may_wait] = differs
    in_turn = {name: values[..., differs] for name, values in {**waiting, **if_in_turn}.items()}
    return _rows(known, {**evidence, **if_it_hangs}), is_undecided, _rows(known, in_turn)


def _differ(one: Columns, other: Columns) -> Array:
    """Which rows differ in any of the columns."""
    different = np.zeros(len(one["status"]), bool)
    for name, values in one.items():
        # Null is not equal to itself where it is NaN.
        is_other = (values != other[name]) & ((values == values) | (other[name] == other[name]))
        different |= is_other.any(axis=0) if is_other.ndim > 1 else is_other
    return different


def _rows(known: _Known, verdict: Columns) -> pa.Table:
    pair, was = verdict["pair"], verdict["was"]
    log_number, group = known.keys.pairs["log"][pair], known.keys.pairs["group"][pair]
    given = known.keys.of_pairs(pair) | {
        "status": words_of(verdict["status"], STATUSES),
        "reason": words_of(verdict["reason"], REASONS),
        "loss_cause": words_of(verdict["loss_cause"], LOSS_CAUSES),
        "reasons": reasons_of(verdict),
        "previous_status": words_of(was, STATUSES),
        "owner": known.keys.names["owner"].named(verdict["owner"]),
        **clients_at(known.inputs, known.keys.names, known.keys.logs["cluster"][log_number], group, verdict["owner"]),
    }
    shown = {
        **verdict,
        "since": np.where(verdict["status"] == was, verdict["was_since"], verdict["as_of"]),
        "commits_seen": verdict["moves"],
        "lag_slope_per_second": verdict["slope"],
        "lag_slope_low_per_second": verdict["slope_low"],
        "lag_slope_high_per_second": verdict["slope_high"],
    }
    arrays = [given[f.name] if f.name in given else arrow_of(shown[f.name], f.type) for f in UNDECIDED_ROWS]
    return pa.Table.from_arrays(arrays, schema=UNDECIDED_ROWS)


def words_of(numbers: Array, words: Sequence[Any]) -> pa.Array:
    """What numbers stand for; null where they are negative."""
    names = pa.array([*map(str, words), None], pa.string())
    return names.take(pa.array(np.where(numbers < 0, len(words), numbers)))


def reasons_of(verdict: Columns) -> pa.Array:
    """Every status that holds, worst first; the status itself is always one of them."""
    holds, status = verdict["holds"], verdict["status"]
    numbers = np.array([STATUSES.index(held) for held in HELD])
    alone = ~(holds & (numbers[:, None] == status)).any(axis=0)
    grid = np.concatenate([holds, alone[None, :]])
    row, column = np.nonzero(grid.T)
    number = np.where(column < len(HELD), np.append(numbers, 0)[column], status[row])
    offsets = np.concatenate([[0], np.cumsum(grid.sum(axis=0))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), words_of(number, STATUSES))


def _days_at(days: Columns, cases: Columns) -> dict[str, Array]:
    """The whole hours of each case's day; none where they are of another hour, or of another topic of that name."""
    until = whole_hours_until(cases["as_of"])
    place = places_in(days["pair"], cases["pair"])
    is_whole = (place >= 0) & (picked_at(days["until"], place, NULL) == until) & (cases["recreated_at"] < until)
    place = np.where(is_whole, place, -1)
    earliest = {"first_lost_at": NEVER}
    made = {}
    for name, values in days.items():
        if name in ("cluster", "group", "topic", "partition", "until", "log", "pair"):
            continue
        if values.dtype == np.float64:
            made[name] = picked_at(values, place, np.nan if name.startswith("usual_pause") else 0.0)
        else:
            null = 0 if name in ("samples", "steps", "moves", "lost_at_least", "lost_at_most", "long_pauses") else NULL
            made[name] = picked_at(values, place, null)
            if null == 0 or name in earliest:
                made[name] = np.where(made[name] == NULL, earliest.get(name, 0), made[name])
    return made
