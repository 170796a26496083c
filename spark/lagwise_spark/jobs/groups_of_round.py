"""From the statuses of partitions to the verdicts on groups, on the driver: a few rows per group."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.groups import GroupVerdict, verdict_of
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.verdicts.columns import Array, Columns, seconds_between
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.rollup import NUMBERS, RollupNames, parts_of, places_of
from lagwise.domain.verdicts.status import REASONS, STATUSES
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise_spark.jobs.round_inputs import GroupsSeen
from lagwise_spark.tasks.arrow_columns import Numbering, columns_of, combined, flags_of, places_among

Group = tuple[str, str]
#: What systems call partitions, by cluster, topic and partition.
Labels = Mapping[tuple[str, str | None, int | None], str]
#: Looks labels up.
LabelsOf = Callable[[Sequence[tuple[str, str, int]]], Labels]

#: Columns of the rows that are numbers, times or flags.
_ARITHMETIC = ("partition", "as_of", *NUMBERS)


def verdicts_on_groups(
    rows: pa.Table, now: GroupsSeen, objective_of: Callable[[Group], float | None], labels_of: LabelsOf
) -> dict[Group, tuple[Mapping[str, Any], GroupVerdict]]:
    """Per (cluster, group): what the latest sample shows of it (nothing of a group that is gone), and its verdict.

    ``rows`` are the :data:`lagwise_spark.tasks.judging.VERDICTS`.
    """
    keys, view, place_of = _views(rows, now)
    columns, names = columns_to_roll_up(rows, view)
    parts = _labelled(parts_of(columns, names), keys, labels_of)
    places = places_of(columns, parts, names)
    verdicts: dict[Group, tuple[Mapping[str, Any], GroupVerdict]] = {}
    for number, group in enumerate(keys):
        its, fact = parts.get(number, []), now.row(place_of.get(number))
        verdict = verdict_of(
            its,
            members=fact.get("members"),
            idle_members=fact.get("idle_members") or 0,
            state=fact.get("state"),
            group_type=fact.get("type"),
            error=fact.get("error"),
            places=places.get(number, ()),
            lag_objective_seconds=objective_of(group),
        )
        verdicts[group] = fact, verdict
    return verdicts


def _views(rows: pa.Table, now: GroupsSeen) -> tuple[list[Group], Array, dict[int, int]]:
    """All groups, the number of each row's, and the place of each in ``now``."""
    clusters, groups = Numbering(), Numbering()
    there = [
        np.array([names.number(name) for name in its], np.int64)
        for names, its in ((clusters, now.clusters), (groups, now.groups))
    ]
    of_rows = [clusters.of(rows["cluster"]), groups.of(rows["group"])]
    sizes = (len(clusters), len(groups))
    keys = np.concatenate([combined(there, sizes), combined(of_rows, sizes)])
    those, number = np.unique(keys, return_inverse=True)
    names = [(clusters.names[key // sizes[1]], groups.names[key % sizes[1]]) for key in those.tolist()]
    count = len(now.clusters)
    return names, number[count:], {view: place for place, view in enumerate(number[:count].tolist())}


def columns_to_roll_up(rows: pa.Table, view: Array) -> tuple[Columns, RollupNames]:
    """Verdicts on partitions as columns, each with the number of the group at a moment that it belongs to."""
    columns = columns_of(rows, PARTITION_STATUS.arrow, _ARITHMETIC) | {"view": view}
    for name, words in (("status", STATUSES), ("reason", REASONS), ("loss_cause", LOSS_CAUSES)):
        columns[name] = places_among(rows[name], [str(word) for word in words])
    columns |= {name: flags_of(rows[name]) for name in ("stopped", "stalled")}
    columns["unmoved_seconds"] = seconds_between(columns["committed_since"], columns["as_of"])
    topics = sorted(set(rows["topic"].unique().to_pylist()))
    columns["topic"] = places_among(rows["topic"], topics)
    members, clients = Numbering(), Numbering()
    columns["owner"] = members.of(rows["owner"])
    called = pc.binary_join_element_wise("client ", rows["client_id"], "")
    on_host = pc.fill_null(pc.binary_join_element_wise(" on host ", rows["host"], ""), "")
    columns["client"] = clients.of(pc.binary_join_element_wise(called, on_host, ""))
    return columns, RollupNames(topics, clients.names, members.names)


def _labelled(
    parts: Mapping[int, list[PartitionsInStatus]], keys: Sequence[Group], labels_of: LabelsOf
) -> dict[int, list[PartitionsInStatus]]:
    """The parts, with what the system calls their worst partition, where that is no number."""
    worst = [
        (keys[number][0], part.worst_topic, part.worst_partition)
        for number, its in parts.items()
        for part in its
        if part.worst_topic is not None and part.worst_partition is not None
    ]
    labels = labels_of(worst)
    if not labels:
        return dict(parts)
    return {
        number: [
            replace(part, worst_label=labels.get((keys[number][0], part.worst_topic, part.worst_partition)))
            for part in its
        ]
        for number, its in parts.items()
    }
