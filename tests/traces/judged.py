"""A long trace of one group, judged by the definition: only the part of the history that verdicts look at is handed
to it, because it goes through everything that it is given."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lagwise.domain.evaluation import Evaluation, Moment, evaluate
from lagwise.domain.evidence import Policy
from lagwise.domain.history import COARSE_SECONDS, DAY_SECONDS, HOUR_SECONDS, LOOKBACK_SECONDS
from lagwise.traces.trace import Row, Trace, moment, sample_id
from lagwise_app.replay.trace_events import events_of

#: The longest window but for the day, which only periodic jobs and rare committers need, with whole buckets at its
#: beginning, a gap before them, and some.
LOOKED_AT_S = LOOKBACK_SECONDS + 3 * COARSE_SECONDS
#: The day, with the hour that is not whole yet and some.
DAY_LOOKED_AT_S = DAY_SECONDS + HOUR_SECONDS


def judged(
    trace: Trace, samples: Sequence[int], looked_at_s: float = DAY_LOOKED_AT_S
) -> Iterator[tuple[float, Evaluation]]:
    """The verdicts at these samples (by their numbers), each with its time, from so many seconds of history."""
    rows = {table: sorted(its_rows, key=lambda row: str(row["sample_id"])) for table, its_rows in trace.rows.items()}
    ids = {table: [str(row["sample_id"]) for row in its_rows] for table, its_rows in rows.items()}
    events = group_events(trace)
    # The log start's jumps are looked for in all of the history there is.
    is_by_size = any(row["retention_bytes"] is not None for row in trace.rows["topics"])
    policy = Policy(trace.sample_interval_s, trace.lag_objective_s, trace.risk_horizon_s)
    for index in samples:
        time_s = trace.sample_times[index]
        first = sample_id(bisect_left(trace.sample_times, time_s - looked_at_s))
        last = sample_id(index)
        seen: dict[str, list[Row]] = {"topics": trace.rows["topics"], "events": events}
        for table in ("commits", "watermarks", "groups"):
            begin = 0 if table == "watermarks" and is_by_size else bisect_left(ids[table], first)
            seen[table] = rows[table][begin : bisect_right(ids[table], last)]
        seen["members"] = rows["members"][bisect_left(ids["members"], last) : bisect_right(ids["members"], last)]
        yield (
            time_s,
            evaluate(seen, Moment(last, moment(time_s), policy, trace.offsets_retention_s, trace.lag_objectives_s)),
        )


def group_events(trace: Trace) -> list[Row]:
    """What a collector would have told of the groups: told from the samples in which a group is not described as in
    the one before, and from those before them; in between nothing can have happened to it."""
    described: list[list[object]] = [[] for _ in trace.sample_times]
    for table, columns in (("groups", ("group", "state", "type")), ("members", ("group", "member_id", "assignment"))):
        for row in trace.rows[table]:
            described[int(row["sample_id"])].append([row[column] for column in columns])
    numbers = range(1, len(described))
    kept = sorted({0, *(n for i in numbers if described[i] != described[i - 1] for n in (i - 1, i))})
    renamed = {sample_id(old): sample_id(new) for new, old in enumerate(kept)}

    def few(rows: Sequence[Mapping[str, object]]) -> list[Row]:
        return [{**r, "sample_id": renamed[str(r["sample_id"])]} for r in rows if str(r["sample_id"]) in renamed]

    times = tuple(trace.sample_times[n] for n in kept)
    return events_of(replace(trace, sample_times=times, rows={table: few(rows) for table, rows in trace.rows.items()}))
