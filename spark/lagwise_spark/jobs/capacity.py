"""Capacity verdicts and advice, from what the other tables know. Small rows, by the driver; some at every round.

Sizing one group's work on a topic takes milliseconds, which at tens of thousands of them is no part of a round: the
stalest go first, and what is left waits for the next.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from lagwise.config import CapacitySettings
from lagwise.domain.capacity.assessment import Assessment, assess
from lagwise.domain.sizing.workload import SizeBy
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.store import Lake
from lagwise_spark.jobs.capacity_facts import Facts, Key, ObjectiveOf, Row, key_of

#: An answer is looked at again when the status is so much newer: where nothing is collected, nothing is judged again.
#: That of a group that is behind is wanted soon, and what its messages cost may just have changed.
AGAIN_AFTER, AGAIN_WHILE_BEHIND = timedelta(minutes=5), timedelta(minutes=1)
#: So many a round, at most.
AT_MOST = 200

_READERS = """
    select cluster, "group", topic, max(as_of) as as_of, count(*) as partitions,
           count(distinct owner) as members, count(distinct coalesce(host, owner)) as nodes, sum(lag) as lag,
           sum(produce_rate_per_second) as rate, sum(consume_rate_per_second) as read_rate
    from partition_status where status != 'ghost' group by cluster, "group", topic
"""

_BEHIND = 'select cluster, "group" from group_status where behind_since is not null'


def plan(
    lake: Lake,
    settings: CapacitySettings,
    now: datetime,
    *,
    objective_of: ObjectiveOf,
    at_most: int = AT_MOST,
) -> int:
    """Judge the group-topics whose answers are oldest; how many were. Groups that went away are left out of the
    table. Raises LakeError."""
    readers = {key_of(r): r for r in lake.query(_READERS, over=[PARTITION_STATUS]).to_pylist()}
    before = {key_of(r): r for r in lake.read(CAPACITY).to_pylist()}
    judged = {key: row["as_of"] for key, row in before.items()}
    behind = {(r["cluster"], r["group"]) for r in lake.query(_BEHIND, over=[GROUP_STATUS]).to_pylist()}

    def is_due(key: Key, reader: Row) -> bool:
        after = AGAIN_WHILE_BEHIND if key[:2] in behind else AGAIN_AFTER
        return key not in judged or judged[key] <= reader["as_of"] - after

    due = sorted(
        (key for key, reader in readers.items() if is_due(key, reader)),
        key=lambda key: (judged[key].timestamp() if key in judged else 0.0, key),
    )[:at_most]
    if not due and before.keys() <= readers.keys():
        return 0
    facts = Facts(lake, settings, now, {(cluster, topic) for cluster, _, topic in due}, objective_of)
    made = {}
    for key in due:
        found = assess(facts.known(readers[key]), settings.target_utilisation, SizeBy(settings.size_by))
        made[key] = _row(readers[key], found, objective_of(*key[:2]))
    kept = [row for key, row in before.items() if key in readers and key not in made]
    lake.replace(CAPACITY, CAPACITY.from_rows([*kept, *made.values()]))
    return len(made)


def _row(reader: Row, found: Assessment, objective_seconds: float) -> dict[str, Any]:
    advice, can_do, values = found.advice, found.can_do, {i.name: i for i in found.inputs}

    def value(name: str) -> float | None:
        return values[name].value if name in values else None

    def number(name: str) -> int | None:
        return int(values[name].value) if name in values else None

    return {
        "cluster": reader["cluster"],
        "group": reader["group"],
        "topic": reader["topic"],
        "as_of": reader["as_of"],
        "verdict": str(found.judgement.verdict),
        "sentence": found.judgement.sentence,
        "is_exceeded": found.judgement.is_exceeded,
        "enough_until": found.judgement.enough_until,
        "partitions": reader["partitions"],
        "members": number("members") or 0,
        "nodes": reader["nodes"],
        "hottest_share": value("hottest_share"),
        "lag": reader["lag"],
        "produce_rate_per_second": reader["rate"],
        "peak_rate_per_second": value("peak_rate_per_second"),
        "forecast_peak_rate_per_second": value("forecast_peak_per_second"),
        "size_by": str(found.size_by),
        "demand_per_second": found.load.now_per_second,
        "forecast_demand_per_second": found.load.highest_ahead_per_second,
        "forecast_demand_high_per_second": found.load.highest_upper_per_second,
        "objective_seconds": objective_seconds,
        "objective_rate_per_second": value("objective_rate_per_second"),
        "planned_objective_rate_per_second": value("planned_objective_per_second"),
        "member_rate_per_second": found.member_rate_per_second,
        "unit": str(found.unit),
        "capacity_low_per_second": can_do.low if can_do else None,
        "capacity_high_per_second": can_do.high if can_do else None,
        "capacity_source": str(found.source),
        "t1_seconds": found.workload.t1_seconds if found.workload else value("t1_seconds"),
        # 0 is that of members, of which only the time per message as a whole is known
        "t2_seconds": (found.workload.t2_seconds or None) if found.workload else value("t2_seconds"),
        "cores": value("cores"),
        "threads_per_node": number("threads_per_node"),
        "max_threads_per_node": found.workload.max_threads_per_node if found.workload else None,
        "concurrency": str(found.workload.concurrency) if found.workload else None,
        "advised_nodes": advice.nodes if advice else None,
        "advised_threads_per_node": advice.threads_per_node if advice else None,
        "advised_partitions": advice.triple.partitions if advice and advice.triple else None,
        "slots_held": number("slots_held"),
        "slots_free": number("slots_free"),
        "binds": str(advice.binds) if advice else None,
        "change": advice.cheapest_change if advice else None,
        "advice": " ".join(_sentences(found)) or None,
        "confidence": str(found.confidence),
        "inputs": [
            {
                "name": i.name,
                "value": i.value,
                "source": i.source,
                "samples": i.samples,
                "measured_at": i.measured_at,
            }
            for i in found.inputs
        ],
    }


def _sentences(found: Assessment) -> Iterator[str]:
    """The advice, and whether there are slots for it."""
    if found.advice is not None:
        yield found.advice.verdict
    if found.slots is not None:
        yield found.slots.sentence
