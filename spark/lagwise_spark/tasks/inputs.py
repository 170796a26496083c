"""What a round knows besides the files: small tables, the same for every task, and what they say of its cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.columns import NULL, Array, Columns
from lagwise_spark.tasks.arrow_columns import Numbering, columns_of, combined, places_in


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
        facts: of groups at their moments (cluster, group, sample_id, and :func:`..ownership.group_facts`).
        assigned: cluster, group, sample_id, topic of which any partition is assigned to a member.
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


def picked_at(values: Array, place: Array, null: Any) -> Array:
    """The values at these places; null where that is -1."""
    return np.where(place >= 0, np.append(values, np.array(null, values.dtype))[place], null)


def _group_keys(names: Mapping[str, Numbering], rows: pa.Table) -> tuple[Array, Array]:
    return names["cluster"].of(rows["cluster"]), names["group"].of(rows["group"])


def facts_at(
    inputs: RoundInputs, names: Mapping[str, Numbering], cluster: Array, group: Array, sample: Array | None = None
) -> dict[str, Array]:
    """The facts of groups; where there are those of several samples, in these."""
    rows = inputs.facts
    of, wanted = list(_group_keys(names, rows)), [cluster, group]
    if sample is not None:
        of, wanted = [*of, names["sample_id"].of(rows["sample_id"])], [*wanted, sample]
    sizes = [len(names[name]) for name in ("cluster", "group", "sample_id")][: len(of)]
    place = places_in(combined(of, sizes), combined(wanted, sizes))
    made = {}
    for field in rows.schema:
        if field.name in ("cluster", "group", "sample_id"):
            continue
        values = columns_of(rows, rows.schema, [field.name])[field.name]
        null = (
            False
            if values.dtype == np.bool_
            else np.nan
            if values.dtype == np.float64
            else _NO_FACT.get(field.name, NULL)
        )
        made[field.name] = picked_at(values, place, null)
    return made


_NO_FACT = {"error": -1, "samples_of_unrest": 0, "group_samples": 0, "idle_members": 0, "state": -1, "type": -1}


def assigned_at(
    inputs: RoundInputs, names: Mapping[str, Numbering], cluster: Array, group: Array, topic: Array
) -> tuple[Array, Array]:
    rows = inputs.assigned
    of = (*_group_keys(names, rows), names["topic"].of(rows["topic"]))
    sizes = (len(names["cluster"]), len(names["group"]), len(names["topic"]))
    of_topic = np.isin(combined([cluster, group, topic], sizes), combined(of, sizes))
    return of_topic, np.isin(combined([cluster, group], sizes[:2]), combined(of[:2], sizes[:2]))


def limits_at(inputs: RoundInputs, names: Mapping[str, Numbering], cluster: Array, topic: Array) -> dict[str, Array]:
    rows = inputs.limits
    of = (names["cluster"].of(rows["cluster"]), names["topic"].of(rows["topic"]))
    sizes = (len(names["cluster"]), len(names["topic"]))
    place = places_in(combined(of, sizes), combined([cluster, topic], sizes))
    columns = columns_of(rows, rows.schema, [n for n in rows.schema.names if n not in ("cluster", "topic")])
    return {n: picked_at(v, place, np.nan if v.dtype == np.float64 else False) for n, v in columns.items()}


def objectives_at(
    inputs: RoundInputs, names: Mapping[str, Numbering], cluster: Array, group: Array, policy: Columns
) -> Array:
    rows = inputs.objectives
    of = _group_keys(names, rows)
    sizes = (len(names["cluster"]), len(names["group"]))
    place = places_in(combined(of, sizes), combined([cluster, group], sizes))
    own = columns_of(rows, rows.schema, ["lag_objective_seconds"])["lag_objective_seconds"]
    return np.where(place >= 0, picked_at(own, place, 0.0), policy["lag_objective_seconds"])


def clients_at(
    inputs: RoundInputs, names: Mapping[str, Numbering], cluster: Array, group: Array, owner: Array
) -> dict[str, pa.Array]:
    rows = inputs.clients
    of = (*_group_keys(names, rows), names["owner"].of(rows["member_id"]))
    sizes = (len(names["cluster"]), len(names["group"]), len(names["owner"]) + 1)
    wanted = np.where(owner < 0, len(names["owner"]), owner)
    place = places_in(combined(of, sizes), combined([cluster, group, wanted], sizes))
    index = pa.array(place, mask=place < 0)
    return {name: rows[name].combine_chunks().take(index) for name in ("client_id", "host")}
