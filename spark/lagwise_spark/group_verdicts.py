"""Group verdicts on the driver: a few rows per group go through :mod:`lagwise.domain.groups`."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import inf
from typing import Any

from lagwise.domain.causes import Place
from lagwise.domain.groups import GroupVerdict, verdict_of
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.loss.records import Lost
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

Row = Mapping[str, Any]


#: What systems call partitions, by cluster, topic and partition.
Labels = Mapping[tuple[str, str | None, int | None], str]


def group_verdicts(
    by_status: Iterable[Row],
    groups: Iterable[Row],
    places: Iterable[Row],
    contexts: Iterable[Row],
    own_objectives: Mapping[tuple[str, str], float],
    labels: Labels | None = None,
) -> dict[tuple[str, str], tuple[Row, GroupVerdict]]:
    """Per (cluster, group): its row of facts (empty for a group that is gone) and its verdict. ``contexts`` are what
    verdicts go by on each cluster, ``own_objectives`` the lag objectives of groups that have one of their own, and
    ``labels`` what systems call their partitions, where these are no numbers."""
    objectives = {row["cluster"]: row["lag_objective_seconds"] for row in contexts}
    where: dict[tuple[str, str], list[Place]] = {}
    for row in places:
        place = Place(
            Status(row["status"]),
            row["owner"],
            row["leader"],
            row["partitions"],
            row["name"],
            stands=row["stands"],
        )
        where.setdefault((row["cluster"], row["group"]), []).append(place)
    facts = {(row["cluster"], row["group"]): row for row in groups}
    parts: dict[tuple[str, str], list[PartitionsInStatus]] = {key: [] for key in facts}
    for row in by_status:
        parts.setdefault((row["cluster"], row["group"]), []).append(_part(row, labels or {}))
    verdicts = {}
    for key, its_parts in parts.items():
        fact = facts.get(key, {})
        verdict = verdict_of(
            its_parts,
            members=fact.get("members"),
            idle_members=fact.get("idle_members") or 0,
            state=fact.get("state"),
            group_type=fact.get("type"),
            error=fact.get("group_error"),
            places=where.get(key, ()),
            lag_objective_seconds=own_objectives.get(key, objectives.get(key[0])),
        )
        verdicts[key] = (fact, verdict)
    return verdicts


def _forecast(row: Row, what: str) -> Forecast | None:
    if row[f"{what}_seconds"] is None:
        return None
    high = row[f"{what}_high"]
    return Forecast(row[f"{what}_seconds"], row[f"{what}_low"], high if high < inf else None)


#: What of :class:`PartitionsInStatus` a row does not have by the same name and type.
_MADE = frozenset(
    {
        "status",
        "reason",
        "to_catch_up",
        "to_breach",
        "loss_cause",
        "lost",
        "worst_topic",
        "worst_partition",
        "worst_label",
        "topics",
        "owners",
    }
)
_SAME = tuple(field.name for field in fields(PartitionsInStatus) if field.name not in _MADE)


def _part(row: Row, labels: Labels) -> PartitionsInStatus:
    worst = row["worst"] or {}
    return PartitionsInStatus(
        status=Status(row["status"]),
        reason=UnknownReason(row["reason"]) if row["reason"] else None,
        to_catch_up=_forecast(row, "catch_up"),
        to_breach=_forecast(row, "breach"),
        loss_cause=LossCause(row["loss_cause"]) if row["loss_cause"] else None,
        lost=Lost(row["lost_at_least"], row["lost_at_most"], row["first_lost_seconds"], row["last_lost_seconds"]),
        worst_topic=worst.get("topic"),
        worst_partition=worst.get("partition"),
        worst_label=labels.get((row["cluster"], worst.get("topic"), worst.get("partition"))),
        topics=frozenset(row["topics"] or ()),
        owners=frozenset(row["owners"] or ()),
        **{name: row[name] for name in _SAME if row[name] is not None},
    )
