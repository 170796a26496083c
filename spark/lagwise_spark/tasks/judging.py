"""A round on a range of topic-partitions: from raw samples and the history to verdicts and finished minutes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.buckets import EARLIEST, HOUR, MINUTE, SUMS, merged, of_samples
from lagwise.domain.verdicts.columns import NEVER, NULL, Array, Columns, Ranges, start_of, taken
from lagwise.domain.verdicts.evidence import Known, evidence_of
from lagwise.domain.verdicts.logs import Logs, log_buckets, logs_of_samples, seen_logs
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.samples import known_samples
from lagwise.domain.verdicts.status import HELD, REASONS, STATUSES, judge
from lagwise.domain.verdicts.windows import pace_of, whole_hours_until
from lagwise.domain.vocabulary import UnknownReason
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise_spark.tasks.arrow_columns import Numbering, arrow_of, columns_of, combined, places_in, stacked
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles

#: Columns of `minutes` that judging needs: all but what only charts read.
_BUCKETS = tuple(
    c.name for c in MINUTES.columns if c.name not in ("cluster", "group", "topic", "partition", "last_lag", "max_lag")
)


@dataclass(frozen=True)
class Moment:
    """A cluster's latest sample, and what verdicts on it go by. Times in microseconds since the epoch."""

    cluster: str
    sample_id: str
    as_of: int
    interval_seconds: float
    gap_seconds: float
    lag_objective_seconds: float
    risk_horizon_seconds: float
    minimum_span_seconds: float
    offsets_retention_seconds: float
    #: The first minute that is made from raw samples; earlier ones are read.
    open_from: int
    #: Earlier minutes than this are read by five.
    fine_from: int


@dataclass(frozen=True)
class RoundInputs:
    """What a round is made of, besides the files: small tables, the same for every task.

    Attributes:
        moments: of every cluster that is judged.
        sample_ids: the samples that were written completely, from the first open minute's gap on.
        facts: of groups at their moments (cluster, group, and :func:`..ownership.group_facts`).
        assigned: cluster, group, topic of which any partition is assigned to a member.
        clients: cluster, group, member_id, client_id, host.
        limits: cluster, topic, and :func:`..retention.limits_of`.
        objectives: cluster, group, lag_objective_seconds of groups that have one of their own.
        older: rows of `watermark_five_minutes` from before the history.
    """

    moments: Sequence[Moment]
    sample_ids: frozenset[str]
    facts: pa.Table
    assigned: pa.Table
    clients: pa.Table
    limits: pa.Table
    objectives: pa.Table
    older: pa.Table


def judged_range(inputs: RoundInputs, files: LakeFiles, within: KeyRange) -> Iterator[tuple[str, pa.Table]]:
    """What a round makes of a range: rows of `partition_status` with ``previous_status``, and of the finished
    `minutes` and `watermark_minutes`, each with the name of its table."""
    part = _Range.read(inputs, files, within)
    if not len(part.pairs["log"]):
        return
    open_logs, open_buckets = part.open_logs(), part.open_buckets()
    yield MINUTES.name, part.finished_minutes(open_buckets)
    yield WATERMARK_MINUTES.name, part.finished_watermark_minutes(open_logs)
    yield PARTITION_STATUS.name, _verdicts(part, stacked_logs([part.history_logs, open_logs]), open_buckets)


def stacked_logs(parts: Sequence[Logs]) -> Logs:
    """Several histories in one, in order of log and time."""
    points, ends, resets = (stacked([getattr(part, name) for part in parts]) for name in ("points", "ends", "resets"))
    return Logs(
        taken(points, np.lexsort((points["at"], points["log"]))),
        taken(ends, np.lexsort((ends["first_at"], ends["log"]))),
        taken(resets, np.lexsort((resets["at"], resets["log"]))),
    )


@dataclass(frozen=True)
class _Range:
    """The rows of a range as columns, by numbers of their group-partitions (``pair``) and topic-partitions (``log``)."""

    inputs: RoundInputs
    clusters: Numbering
    groups: Numbering
    topics: Numbering
    members: Numbering
    topic_ids: Numbering
    #: cluster, topic, partition of each topic-partition.
    logs: Columns
    #: group, log of each group-partition.
    pairs: Columns
    #: Raw samples: those of the open minutes and of the gap before.
    commits: Columns
    ends: Columns
    #: Buckets before the open minutes.
    history: Columns
    history_logs: Logs
    days: Columns
    previous: Columns

    @classmethod
    def read(cls, inputs: RoundInputs, files: LakeFiles, within: KeyRange) -> "_Range":
        names = {name: Numbering() for name in ("cluster", "group", "topic", "owner", "topic_id", "sample_id")}
        for moment in inputs.moments:
            names["cluster"].number(moment.cluster)
        moments = _moments(inputs.moments)

        def numbered(rows: pa.Table, table: Any, columns: Sequence[str]) -> dict[str, Array]:
            schema = table.without_day
            return {
                name: names[name].of(rows[name]) if name in names else columns_of(rows, schema, [name])[name]
                for name in columns
            }

        def read(table: Any, columns: Sequence[str], samples: frozenset[str] | None = None) -> dict[str, Array]:
            return numbered(files.rows(table, columns, within, samples=samples), table, columns)

        of_log, of_pair = ("cluster", "topic", "partition"), ("cluster", "group", "topic", "partition")
        raw = inputs.sample_ids
        commits = read(
            COMMITS, (*of_pair, "sample_id", "sampled_at", "committed", "next_record", "committed_at", "owner"), raw
        )
        ends = read(
            WATERMARKS,
            (*of_log, "sample_id", "sampled_at", "topic_id", "log_start", "high_watermark", "last_stable", "leader"),
            raw,
        )
        minutes, fives = (read(table, (*of_pair, *_BUCKETS)) for table in (MINUTES, FIVE_MINUTES))
        days = read(DAYS, [column.name for column in DAYS.columns])
        previous = _previous(files.rows(PARTITION_STATUS, _PREVIOUS, within), numbered)
        log_rows = [
            (files.rows(table, _LOG_COLUMNS, within), table) for table in (WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES)
        ]
        log_rows.append((inputs.older, WATERMARK_FIVE_MINUTES))
        log_parts = [(numbered(rows, table, [*of_log, *_LOG_ENDS]), rows) for rows, table in log_rows]

        # --- numbers for topic-partitions and group-partitions ---
        tables = [commits, ends, minutes, fives, days, previous, *(columns for columns, _ in log_parts)]
        most = 1 + max(int(table["partition"].max(initial=0)) for table in tables)
        sizes = (len(names["cluster"]), len(names["topic"]), most)
        log_keys = [combined([table[name] for name in of_log], sizes) for table in tables]
        logs, number = np.unique(np.concatenate(log_keys), return_inverse=True)
        bounds = np.cumsum([0, *(len(key) for key in log_keys)])
        for table, start, stop in zip(tables, bounds, bounds[1:], strict=False):
            table["log"] = number[start:stop]
        paired = [table for table in tables if "group" in table]
        pair_keys = [combined([table["group"], table["log"]], (len(names["group"]), len(logs))) for table in paired]
        pairs, number = np.unique(np.concatenate(pair_keys), return_inverse=True)
        bounds = np.cumsum([0, *(len(key) for key in pair_keys)])
        for table, start, stop in zip(paired, bounds, bounds[1:], strict=False):
            table["pair"] = number[start:stop]

        cluster_of_log = logs // (sizes[1] * sizes[2])
        return cls(
            inputs=inputs,
            clusters=names["cluster"],
            groups=names["group"],
            topics=names["topic"],
            members=names["owner"],
            topic_ids=names["topic_id"],
            logs={"cluster": cluster_of_log, "topic": logs // sizes[2] % sizes[1], "partition": logs % sizes[2]},
            pairs={"group": pairs // max(1, len(logs)), "log": pairs % max(1, len(logs))},
            commits=commits | {"is_latest": _is_latest(commits, names["sample_id"], inputs.moments)},
            ends=ends | {"is_latest": _is_latest(ends, names["sample_id"], inputs.moments)},
            history=_history(minutes, fives, moments),
            history_logs=_history_logs(log_parts, moments),
            days=days,
            previous=previous,
        )

    @property
    def moments(self) -> Columns:
        """The moments by the number of their cluster."""
        return _moments(self.inputs.moments)

    def open_buckets(self) -> dict[str, Array]:
        """The open minutes of group-partitions."""
        order = np.lexsort((self.commits["sampled_at"], self.commits["pair"]))
        commits = taken(self.commits, order) | {"at": self.commits["sampled_at"][order]}
        count = len(self.logs["topic"])
        end_of = places_in(
            combined([self.ends["sample_id"], self.ends["log"]], (1 << 31, count)),
            combined([commits["sample_id"], commits["log"]], (1 << 31, count)),
        )
        known = known_samples(commits, self.ends, end_of)
        cluster = self.logs["cluster"][known["log"]]
        minutes = merged(of_samples(known, self.moments["gap_seconds"][cluster]), MINUTE)
        return taken(minutes, minutes["minute"] >= self.moments["open_from"][self.cluster_of_pair(minutes["pair"])])

    def open_logs(self) -> Logs:
        """The open minutes of topic-partitions."""
        is_readable = (self.ends["high_watermark"] != NULL) & (self.ends["log_start"] != NULL)
        ends = taken(self.ends, is_readable)
        ends["at"] = ends["sampled_at"]
        logs = logs_of_samples(taken(ends, np.lexsort((ends["at"], ends["log"]))))
        open_from = self.moments["open_from"][self.logs["cluster"]]

        def opened(rows: Columns, at: str) -> dict[str, Array]:
            return taken(rows, rows[at] >= open_from[rows["log"]])

        return Logs(opened(logs.points, "at"), opened(logs.ends, "first_at"), opened(logs.resets, "at"))

    def cluster_of_pair(self, pair: Array) -> Array:
        return self.logs["cluster"][self.pairs["log"][pair]]

    def names_of_log(self, log: Array) -> dict[str, pa.Array]:
        """The key columns of rows of topic-partitions."""
        return {
            "cluster": self.clusters.named(self.logs["cluster"][log]),
            "topic": self.topics.named(self.logs["topic"][log]),
            "partition": arrow_of(self.logs["partition"][log], pa.int32()),
        }

    def finished_minutes(self, minutes: Columns) -> pa.Table:
        """Rows of `minutes` that no later sample will change: all before the latest sample's own."""
        end = start_of(MINUTE, self.moments["as_of"])
        rows = taken(minutes, minutes["minute"] < end[self.cluster_of_pair(minutes["pair"])])
        log = self.pairs["log"][rows["pair"]]
        names = self.names_of_log(log) | {"group": self.groups.named(self.pairs["group"][rows["pair"]])}
        return bucket_rows(rows, names, MINUTES.without_day)

    def finished_watermark_minutes(self, logs: Logs) -> pa.Table:
        """Rows of `watermark_minutes`, likewise."""
        end = start_of(MINUTE, self.moments["as_of"])[self.logs["cluster"]]
        made = log_buckets(logs, MINUTE)
        is_finished = made.rows["minute"] < end[made.rows["log"]]
        rows, points = (
            taken(made.rows, is_finished),
            Ranges(made.points.start[is_finished], made.points.stop[is_finished]),
        )
        return log_bucket_rows(rows, points, logs.points, self.names_of_log(rows["log"]), WATERMARK_MINUTES.without_day)


def bucket_rows(rows: Columns, names: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """Rows of `minutes`, or of what these are merged into, from buckets."""

    def column(field: pa.Field) -> pa.Array:
        if field.name in names:
            return names[field.name]
        values = rows[field.name]
        if field.name.startswith("first_") and field.name.endswith(("progress_at", "lost_at")):
            values = np.where(values == NEVER, NULL, values)
        if field.name in ("rewound_records", "lost_at_least", "lost_at_most"):
            values = np.where(values == 0, NULL, values)
        return arrow_of(values, field.type)

    return pa.Table.from_arrays([column(field) for field in schema], schema=schema)


def log_bucket_rows(
    rows: Columns, points: Ranges, of: Columns, names: Mapping[str, pa.Array], schema: pa.Schema
) -> pa.Table:
    """Rows of `watermark_minutes`, or of what these are merged into, from buckets and the points they hold."""
    _, place = points.rows()
    offsets = np.concatenate([[0], np.cumsum(points.sizes)]).astype(np.int32)
    fields = [schema.field("points").type.value_type.field(n) for n in range(2)]
    structs = pa.StructArray.from_arrays([arrow_of(of[f.name][place], f.type) for f in fields], fields=fields)
    made = {**names, "points": pa.ListArray.from_arrays(pa.array(offsets), structs)}
    made["topic_id"] = names.get("topic_id", pa.nulls(len(rows["log"]), pa.string()))
    return pa.Table.from_arrays(
        [made[f.name].cast(f.type) if f.name in made else arrow_of(rows[f.name], f.type) for f in schema], schema=schema
    )


_LOG_ENDS = (
    "minute", "first_log_start", "last_log_start", "first_high_watermark", "last_high_watermark", "first_at", "last_at",
    "reset_at", "recreated_at",
)  # fmt: skip
_LOG_COLUMNS = (*_LOG_ENDS, "points")
_PREVIOUS = (
    "cluster", "group", "topic", "partition", "committed", "committed_since", "log_start", "jump_records",
    "jump_high_watermark", "status", "reason", "since",
)  # fmt: skip


def _moments(moments: Sequence[Moment]) -> dict[str, Array]:
    times = ("as_of", "open_from", "fine_from")
    return {name: np.array([getattr(m, name) for m in moments], np.int64) for name in times} | {
        name: np.array([getattr(m, name) for m in moments], np.float64)
        for name in (
            "interval_seconds", "gap_seconds", "lag_objective_seconds", "risk_horizon_seconds", "minimum_span_seconds",
            "offsets_retention_seconds",
        )
    }  # fmt: skip


def _is_latest(rows: Columns, samples: Numbering, moments: Sequence[Moment]) -> Array:
    latest = [samples.number(moment.sample_id) for moment in moments]
    return np.isin(rows["sample_id"], latest)


def _previous(rows: pa.Table, numbered: Any) -> dict[str, Array]:
    columns = [name for name in _PREVIOUS if name not in ("status", "reason")]
    made: dict[str, Array] = numbered(rows, PARTITION_STATUS, columns)
    for name, words in (("status", STATUSES), ("reason", REASONS)):
        numbers = {str(word): number for number, word in enumerate(words)}
        encoded = rows[name].combine_chunks()
        encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
        known = np.array([numbers.get(word, -1) for word in encoded.dictionary.to_pylist()] + [-1])
        made[name] = known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]
    return made


#: How far back from the moment buckets are looked at: the look-back, and to where `days` ends.
_REACH = HOUR + 10 * MINUTE


def _history(minutes: Columns, fives: Columns, moments: Columns) -> dict[str, Array]:
    """Buckets before the open minutes, in order of pair and time."""
    of = {name: moments[name] for name in ("open_from", "fine_from", "as_of")}
    fine = taken(
        minutes,
        (minutes["minute"] >= of["fine_from"][minutes["cluster"]])
        & (minutes["minute"] < of["open_from"][minutes["cluster"]]),
    )
    coarse = taken(
        fives,
        (fives["minute"] < of["fine_from"][fives["cluster"]])
        & (fives["minute"] >= of["as_of"][fives["cluster"]] - _REACH),
    )
    return stacked([buckets_of(rows, ("pair", *_BUCKETS)) for rows in (fine, coarse)])


def buckets_of(rows: Columns, names: Sequence[str]) -> dict[str, Array]:
    """Rows of `minutes`, or of what these are merged into, as buckets: what adds up is 0 where it is null, and what is
    the first of its kind is later than all."""
    nulls = dict.fromkeys(SUMS, 0) | dict.fromkeys(EARLIEST, NEVER)
    return {n: np.where(rows[n] == NULL, nulls[n], rows[n]) if n in nulls else rows[n] for n in names}


def _history_logs(parts: Sequence[tuple[Columns, pa.Table]], moments: Columns) -> Logs:
    """The logs before the open minutes; the parts are minutes, five minutes, and five minutes from before all these."""
    (fine, _), (coarse, _), (older, _) = parts
    kept = [
        (fine["minute"] >= moments["fine_from"][fine["cluster"]])
        & (fine["minute"] < moments["open_from"][fine["cluster"]]),
        (coarse["minute"] < moments["fine_from"][coarse["cluster"]])
        & (coarse["minute"] >= moments["as_of"][coarse["cluster"]] - _REACH),
        older["minute"] < moments["as_of"][older["cluster"]] - _REACH,
    ]
    ends, points, resets = [], [], []
    for (rows, arrow), mask in zip(parts, kept, strict=True):
        its = taken(rows, mask)
        ends.append({name: its[name] for name in ("log", *_LOG_ENDS) if name not in ("reset_at", "recreated_at")})
        lists = arrow["points"].combine_chunks() if arrow.num_rows else None
        if lists is not None:
            sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
            owner = np.repeat(np.arange(len(sizes)), sizes)
            flat = lists.flatten()
            held = mask[owner]
            points.append(
                {
                    "log": rows["log"][owner][held],
                    "at": flat.field("at").cast(pa.int64()).to_numpy(zero_copy_only=False)[held],
                    "high_watermark": flat.field("high_watermark").to_numpy(zero_copy_only=False)[held],
                }
            )
        for at, is_recreation in (("reset_at", False), ("recreated_at", True)):
            there = taken({"log": its["log"], "at": its[at]}, its[at] != NULL)
            resets.append({**there, "is_recreation": np.full(len(there["at"]), is_recreation)})
    nothing = {"log": np.zeros(0, np.int64), "at": np.zeros(0, np.int64), "high_watermark": np.zeros(0, np.int64)}
    return Logs(stacked([nothing, *points]), stacked(ends), stacked(resets))


def _verdicts(part: _Range, logs: Logs, open_buckets: Columns) -> pa.Table:
    """Rows of `partition_status`, and ``previous_status``."""
    names = ("pair", *_BUCKETS)
    buckets = stacked([part.history, {name: open_buckets[name] for name in names}])
    buckets = taken(buckets, np.lexsort((buckets["minute"], buckets["pair"])))
    latest_commits, latest_ends = (taken(rows, rows["is_latest"]) for rows in (part.commits, part.ends))
    pair = np.unique(np.concatenate([latest_commits["pair"], buckets["pair"]]))
    log_number, group = part.pairs["log"][pair], part.pairs["group"][pair]
    cluster, topic = part.logs["cluster"][log_number], part.logs["topic"][log_number]
    moments = {name: values[cluster] for name, values in part.moments.items()}
    as_of = moments["as_of"]
    log = seen_logs(logs, log_number, as_of)
    cases = {
        "pair": pair,
        "as_of": as_of,
        "recreated_at": log.recreated_at,
        "interval_seconds": moments["interval_seconds"],
    }
    pace = pace_of(buckets, _days_at(part.days, cases), cases)
    facts = _facts_at(part, cluster, group)
    on_topic, on_any = _assigned_at(part, cluster, group, topic)
    commit, end = places_in(latest_commits["pair"], pair), places_in(latest_ends["log"], log_number)
    before = places_in(part.previous["pair"], pair)
    previous = {
        name: _picked(part.previous[name], before, NULL)
        for name in ("committed", "committed_since", "log_start", "jump_records", "jump_high_watermark", "since")
    }
    was, why = (_picked(part.previous[name], before, -1) for name in ("status", "reason"))
    policy = {
        "as_of": as_of,
        **{n: v for n, v in moments.items() if n not in ("as_of", "open_from", "fine_from", "gap_seconds")},
    }
    evidence = evidence_of(
        Known(
            policy=policy | {"lag_objective_seconds": _objectives_at(part, cluster, group, policy)},
            commits={
                **{n: _picked(latest_commits[n], commit, NULL) for n in ("committed", "next_record", "committed_at")},
                "owner": _picked(latest_commits["owner"], commit, -1),
            },
            ends={
                **{
                    n: _picked(latest_ends[n], end, NULL)
                    for n in ("log_start", "high_watermark", "last_stable", "leader")
                },
                "has_row": end >= 0,
            },
            pace=pace,
            log=log,
            facts=facts,
            topic_is_assigned=on_topic,
            group_is_assigned=on_any,
            limits=_limits_at(part, cluster, topic),
            previous=previous
            | {
                "was_recreated": why == REASONS.index(UnknownReason.RECREATED),
                "was_expired": why == REASONS.index(UnknownReason.EXPIRED),
            },
        )
    )
    verdict = {**evidence, **judge(evidence)}
    verdict["since"] = np.where(verdict["status"] == was, previous["since"], as_of)
    given = part.names_of_log(log_number) | {
        "group": part.groups.named(group),
        "status": _words(verdict["status"], STATUSES),
        "reason": _words(verdict["reason"], REASONS),
        "loss_cause": _words(verdict["loss_cause"], LOSS_CAUSES),
        "reasons": _reasons(verdict),
        "owner": part.members.named(verdict["owner"]),
        **_clients_at(part, cluster, group, verdict["owner"]),
    }
    verdict |= {
        "commits_seen": verdict["moves"],
        "lag_slope_per_second": verdict["slope"],
        "lag_slope_low_per_second": verdict["slope_low"],
        "lag_slope_high_per_second": verdict["slope_high"],
    }
    schema = PARTITION_STATUS.arrow
    arrays = [given[f.name] if f.name in given else arrow_of(verdict[f.name], f.type) for f in schema]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    return rows.append_column("previous_status", _words(was, STATUSES))


def _picked(values: Array, place: Array, null: Any) -> Array:
    """The values at these places; null where that is -1."""
    return np.where(place >= 0, np.append(values, np.array(null, values.dtype))[place], null)


def _words(numbers: Array, words: Sequence[Any]) -> pa.Array:
    names = pa.array([*map(str, words), None], pa.string())
    return names.take(pa.array(np.where(numbers < 0, len(words), numbers)))


def _reasons(verdict: Columns) -> pa.Array:
    """Every status that holds, worst first; the status itself is always one of them."""
    holds, status = verdict["holds"], verdict["status"]
    numbers = np.array([STATUSES.index(held) for held in HELD])
    alone = ~(holds & (numbers[:, None] == status)).any(axis=0)
    grid = np.concatenate([holds, alone[None, :]])
    row, column = np.nonzero(grid.T)
    number = np.where(column < len(HELD), np.append(numbers, 0)[column], status[row])
    offsets = np.concatenate([[0], np.cumsum(grid.sum(axis=0))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), _words(number, STATUSES))


def _days_at(days: Columns, cases: Columns) -> dict[str, Array]:
    """The whole hours of each case's day; none where they are of another hour, or of another topic of that name."""
    until = whole_hours_until(cases["as_of"])
    place = places_in(days["pair"], cases["pair"])
    is_whole = (place >= 0) & (_picked(days["until"], place, NULL) == until) & (cases["recreated_at"] < until)
    place = np.where(is_whole, place, -1)
    earliest = {"first_lost_at": NEVER}
    made = {}
    for name, values in days.items():
        if name in ("cluster", "group", "topic", "partition", "until", "log", "pair"):
            continue
        if values.dtype == np.float64:
            made[name] = _picked(values, place, np.nan if name == "usual_pause_seconds" else 0.0)
        else:
            null = 0 if name in ("samples", "steps", "lost_at_least", "lost_at_most") else NULL
            made[name] = _picked(values, place, null)
            if null == 0 or name in earliest:
                made[name] = np.where(made[name] == NULL, earliest.get(name, 0), made[name])
    return made


def _group_keys(part: _Range, rows: pa.Table) -> tuple[Array, Array]:
    return part.clusters.of(rows["cluster"]), part.groups.of(rows["group"])


def _facts_at(part: _Range, cluster: Array, group: Array) -> dict[str, Array]:
    rows = part.inputs.facts
    of = _group_keys(part, rows)
    sizes = (len(part.clusters), len(part.groups))
    place = places_in(combined(of, sizes), combined([cluster, group], sizes))
    made = {}
    for field in rows.schema:
        if field.name in ("cluster", "group"):
            continue
        values = columns_of(rows, rows.schema, [field.name])[field.name]
        null = (
            False
            if values.dtype == np.bool_
            else np.nan
            if values.dtype == np.float64
            else _NO_FACT.get(field.name, NULL)
        )
        made[field.name] = _picked(values, place, null)
    return made


_NO_FACT = {"error": -1, "samples_of_unrest": 0, "group_samples": 0, "idle_members": 0, "state": -1, "type": -1}


def _assigned_at(part: _Range, cluster: Array, group: Array, topic: Array) -> tuple[Array, Array]:
    rows = part.inputs.assigned
    of = (*_group_keys(part, rows), part.topics.of(rows["topic"]))
    sizes = (len(part.clusters), len(part.groups), len(part.topics))
    of_topic = np.isin(combined([cluster, group, topic], sizes), combined(of, sizes))
    return of_topic, np.isin(combined([cluster, group], sizes[:2]), combined(of[:2], sizes[:2]))


def _limits_at(part: _Range, cluster: Array, topic: Array) -> dict[str, Array]:
    rows = part.inputs.limits
    of = (part.clusters.of(rows["cluster"]), part.topics.of(rows["topic"]))
    sizes = (len(part.clusters), len(part.topics))
    place = places_in(combined(of, sizes), combined([cluster, topic], sizes))
    columns = columns_of(rows, rows.schema, [n for n in rows.schema.names if n not in ("cluster", "topic")])
    return {n: _picked(v, place, np.nan if v.dtype == np.float64 else False) for n, v in columns.items()}


def _objectives_at(part: _Range, cluster: Array, group: Array, policy: Columns) -> Array:
    rows = part.inputs.objectives
    of = _group_keys(part, rows)
    sizes = (len(part.clusters), len(part.groups))
    place = places_in(combined(of, sizes), combined([cluster, group], sizes))
    own = columns_of(rows, rows.schema, ["lag_objective_seconds"])["lag_objective_seconds"]
    return np.where(place >= 0, _picked(own, place, 0.0), policy["lag_objective_seconds"])


def _clients_at(part: _Range, cluster: Array, group: Array, owner: Array) -> dict[str, pa.Array]:
    rows = part.inputs.clients
    of = (*_group_keys(part, rows), part.members.of(rows["member_id"]))
    sizes = (len(part.clusters), len(part.groups), len(part.members) + 1)
    wanted = np.where(owner < 0, len(part.members), owner)
    place = places_in(combined(of, sizes), combined([cluster, group, wanted], sizes))
    index = pa.array(place, mask=place < 0)
    return {name: rows[name].combine_chunks().take(index) for name in ("client_id", "host")}
