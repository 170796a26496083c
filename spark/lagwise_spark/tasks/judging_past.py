"""Verdicts at moments that have passed, of one cluster: what rounds in time would have said, for the history."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.buckets import HOUR, MINUTE
from lagwise.domain.verdicts.columns import NULL, Array, Columns, ranges_of, taken
from lagwise.domain.verdicts.evidence import Known, evidence_of, no_previous
from lagwise.domain.verdicts.logs import seen_logs
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.series import judged_in_series
from lagwise.domain.verdicts.status import REASONS, STATUSES
from lagwise.domain.verdicts.windows import pace_of, whole_hours, whole_hours_until
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise_spark.tasks.arrow_columns import arrow_of, combined
from lagwise_spark.tasks.inputs import RoundInputs, facts_at, limits_at, objectives_at, picked_at
from lagwise_spark.tasks.judging import VERDICT_ROWS, VERDICTS, reasons_of, words_of
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.minutes import OF_COMMITS, OF_WATERMARKS, in_order
from lagwise_spark.tasks.range_rows import LOG_COLUMNS, OF_LOG, Keys, RangeReader, joined_logs, logs_of
from lagwise_spark.tasks.running import Made

#: How far back from a moment buckets are looked at.
REACH = HOUR + 10 * MINUTE
#: What of :data:`..judging.VERDICT_ROWS` the history needs.
PAST_ROWS = pa.schema([VERDICT_ROWS.field(i) for i in range(VERDICT_ROWS.get_field_index("stalled") + 1)])


@dataclass(frozen=True)
class PastSlice:
    """Moments of one cluster that are judged together. All of their minutes and whole hours have been written.

    Attributes:
        inputs: with facts and assignments of all these samples, and one moment: the cluster's latest, for its settings.
        sample_ids: the samples, in order of time; ``as_of`` has their moments (microseconds since the epoch).
        fine_from: before it history is read by five minutes, as the first moment takes it.
        shown_from: earlier moments are judged only for what later ones remember of them.
        is_last: a round follows.
        within: the range, which holds one cluster only.
    """

    inputs: RoundInputs
    files: LakeFiles
    sample_ids: tuple[str, ...]
    as_of: tuple[int, ...]
    fine_from: int
    shown_from: int
    is_last: bool
    within: KeyRange


def judged_past(wanted: PastSlice) -> Made:
    """Verdicts on group-partitions at the moments that are shown (:data:`PAST_ROWS`), and rows of `partition_status`
    of the last moment if a round follows, which remembers them."""
    (moment,) = wanted.inputs.moments
    reader = RangeReader(wanted.files, wanted.within, [moment.cluster])
    names = reader.names
    samples = np.array([names["sample_id"].number(sample) for sample in wanted.sample_ids], np.int64)
    as_of = np.array(wanted.as_of, np.int64)
    only = frozenset(wanted.sample_ids)
    commits = reader.read(COMMITS, (*OF_COMMITS, "committed_at", "owner"), only)
    ends = reader.read(WATERMARKS, (*OF_WATERMARKS, "leader"), only)
    minutes, fives, hours = (reader.buckets(table) for table in (MINUTES, FIVE_MINUTES, HOURS))
    log_rows = [reader.rows(table, (*OF_LOG, *LOG_COLUMNS)) for table in (WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES)]
    log_rows.append(wanted.inputs.older)
    fine, coarse, older = (reader.numbered(rows, WATERMARK_MINUTES, (*OF_LOG, *LOG_COLUMNS[:-1])) for rows in log_rows)
    keys = reader.keys()
    if not len(keys.pairs["log"]):
        return
    begins = int(as_of[0]) - REACH

    def is_fine(rows: Columns) -> Array:
        return rows["minute"] >= wanted.fine_from

    def is_coarse(rows: Columns) -> Array:
        return (rows["minute"] < wanted.fine_from) & (rows["minute"] >= begins)

    buckets, hours = in_order([(minutes, is_fine(minutes)), (fives, is_coarse(fives))]), in_order([(hours, None)])
    masks = (is_fine(fine), is_coarse(coarse), older["minute"] < begins)
    logs = joined_logs([logs_of(list(zip((fine, coarse, older), log_rows, masks, strict=True)))])

    commit_at, end_at = _rows_at(commits, "pair", keys.pairs, samples), _rows_at(ends, "log", keys.logs, samples)
    at, pair = np.nonzero((commit_at >= 0).T | _is_known(buckets, len(keys.pairs["log"]), as_of))
    log_number, group, now = keys.pairs["log"][pair], keys.pairs["group"][pair], as_of[at]
    cluster, topic = keys.logs["cluster"][log_number], keys.logs["topic"][log_number]
    log = seen_logs(logs, log_number, now)
    interval = np.full(len(pair), moment.interval_seconds)
    cases = {"pair": pair, "as_of": now, "recreated_at": log.recreated_at, "interval_seconds": interval}
    commit, end = commit_at[pair, at], end_at[log_number, at]
    in_sample = {"cluster": cluster, "group": group, "sample": samples[at]}
    on_topic, on_any = _assigned_at(wanted.inputs, keys, in_sample, topic)
    policy = {
        "as_of": now,
        **{
            name: np.full(len(pair), getattr(moment, name))
            for name in (
                "interval_seconds",
                "lag_objective_seconds",
                "risk_horizon_seconds",
                "minimum_span_seconds",
                "offsets_retention_seconds",
            )
        },
    }
    policy["lag_objective_seconds"] = objectives_at(wanted.inputs, names, cluster, group, policy)
    evidence = evidence_of(
        Known(
            policy=policy,
            commits={
                **{n: picked_at(commits[n], commit, NULL) for n in ("committed", "next_record", "committed_at")},
                "owner": picked_at(commits["owner"], commit, -1),
            },
            ends={
                **{n: picked_at(ends[n], end, NULL) for n in ("log_start", "high_watermark", "last_stable", "leader")},
                "has_row": end >= 0,
            },
            pace=pace_of(buckets, _days(hours, cases), cases),
            log=log,
            facts=facts_at(wanted.inputs, names, cluster, group, samples[at]),
            topic_is_assigned=on_topic,
            group_is_assigned=on_any,
            limits=limits_at(wanted.inputs, names, cluster, topic),
            previous=no_previous(len(pair)),
        )
    )
    judged = judged_in_series(evidence, pair, at, at * (1 + int(group.max(initial=0))) + group)
    judged |= {
        "pair": pair,
        "moment": at,
        "since": now,
        "commits_seen": judged["moves"],
        "lag_slope_per_second": judged["slope"],
        "lag_slope_low_per_second": judged["slope_low"],
        "lag_slope_high_per_second": judged["slope_high"],
    }
    is_shown = now >= wanted.shown_from
    yield VERDICTS, _rows(keys, _those(judged, is_shown), PAST_ROWS)
    if wanted.is_last:
        yield PARTITION_STATUS.name, _rows(keys, _those(judged, at == len(as_of) - 1), PARTITION_STATUS.arrow)


def _rows_at(rows: Columns, of: str, keyed: Columns, samples: Array) -> Array:
    """The number of the row of each pair, or log, in each of the samples; -1 where there is none."""
    made = np.full((len(next(iter(keyed.values()))), len(samples)), -1, np.int64)
    order = np.argsort(samples)
    place = order[np.searchsorted(samples[order], rows["sample_id"])]
    made[rows[of], place] = np.arange(len(rows[of]))
    return made


def _is_known(buckets: Columns, pairs: int, as_of: Array) -> Array:
    """Of each moment and pair, whether there is any bucket as far back as a round looks."""
    every = np.arange(pairs * len(as_of))
    now = as_of[every // pairs]
    its = ranges_of(every % pairs, buckets["pair"])
    known = its.bisect_left(buckets["minute"], now + 1) > its.bisect_left(buckets["minute"], now - REACH)
    return known.reshape(len(as_of), pairs)


def _days(hours: Columns, cases: Columns) -> dict[str, Array]:
    """The whole hours of each case's day: worked out once for all cases of an hour."""
    keys = np.stack([cases["pair"], whole_hours_until(cases["as_of"]), cases["recreated_at"]])
    those, number = np.unique(keys, axis=1, return_inverse=True)
    wanted = {"pair": those[0], "until": those[1], "recreated_at": those[2]}
    return taken(whole_hours(hours, wanted), number.ravel())


def _assigned_at(inputs: RoundInputs, keys: Keys, views: Columns, topic: Array) -> tuple[Array, Array]:
    """Whether any partition of the topic, and any at all, is assigned to a member of the group in the sample."""
    rows, names = inputs.assigned, keys.names
    of = [names["sample_id"].of(rows["sample_id"]), names["group"].of(rows["group"]), names["topic"].of(rows["topic"])]
    wanted = [views["sample"], views["group"], topic]
    sizes = (len(names["sample_id"]), len(names["group"]), len(names["topic"]))
    of_topic = np.isin(combined(wanted, sizes), combined(of, sizes))
    return of_topic, np.isin(combined(wanted[:2], sizes[:2]), combined(of[:2], sizes[:2]))


def _those(rows: Columns, mask: Array) -> dict[str, Array]:
    """The rows that a mask holds for; a column may have several values a row."""
    return {name: values[..., mask] for name, values in rows.items()}


def _rows(keys: Keys, judged: Columns, schema: pa.Schema) -> pa.Table:
    given = keys.of_pairs(judged["pair"]) | {
        "status": words_of(judged["status"], STATUSES),
        "reason": words_of(judged["reason"], REASONS),
        "loss_cause": words_of(judged["loss_cause"], LOSS_CAUSES),
        "reasons": reasons_of(judged),
        "owner": keys.names["owner"].named(judged["owner"]),
        # They are only named in sentences, which no history has.
        **{name: pa.nulls(len(judged["pair"]), pa.string()) for name in ("client_id", "host")},
    }
    arrays = [given[f.name] if f.name in given else arrow_of(judged[f.name], f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
