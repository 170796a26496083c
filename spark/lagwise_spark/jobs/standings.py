"""The statuses that groups are shown with, since when, and the changes between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.store import Lake

Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Standing:
    """The status that a group has been shown with, and since when."""

    status: str
    since: datetime


Standings = dict[Group, Standing]


def standings(lake: Lake) -> Standings:
    """What the last round said of all groups."""
    rows = lake.read(GROUP_STATUS).select(["cluster", "group", "status", "since"]).to_pylist()
    return {(row["cluster"], row["group"]): Standing(row["status"], row["since"]) for row in rows}


def changes_of(
    cluster: str, shown: Sequence[Mapping[str, Any]], before: Standings
) -> tuple[list[dict[str, Any]], Standings]:
    """The changes of status of groups, and how they stand after the last of the rows. A group that is not there at a
    moment is forgotten, as by a round."""
    others = {key: standing for key, standing in before.items() if key[0] != cluster}
    its = {key: standing for key, standing in before.items() if key[0] == cluster}
    changes: list[dict[str, Any]] = []
    by_moment: dict[datetime, list[Mapping[str, Any]]] = {}
    for row in shown:
        by_moment.setdefault(row["as_of"], []).append(row)
    for at, rows in by_moment.items():
        now: Standings = {}
        for row in rows:
            key, status = (cluster, row["group"]), row["status"]
            previous = its.get(key)
            if previous is not None and previous.status == status:
                now[key] = previous
                continue
            now[key] = Standing(status, at)
            changes.append(change_of(key, at, previous, status, row["reason"]))
        its = now
    return changes, others | its


def change_of(group: Group, at: datetime, before: Standing | None, after: str, reason: str | None) -> dict[str, Any]:
    """A row of `status_changes` of a whole group."""
    return {
        "cluster": group[0],
        "group": group[1],
        "topic": None,
        "partition": None,
        "at": at,
        "before": None if before is None else before.status,
        "after": after,
        "reason": reason,
    }
