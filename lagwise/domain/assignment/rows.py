"""From the raw rows of a sample to the rows of the table ``assignments``."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lagwise.domain.assignment.findings import findings
from lagwise.domain.assignment.model import Member, Partition
from lagwise.domain.assignment.skew import Figures, Rates
from lagwise.domain.assignment.view import Alternative, AssignmentView, assignment_view
from lagwise.domain.vocabulary import QUEUE_TYPES, GroupState

Row = Mapping[str, Any]

#: All members got what they own in one generation: which one makes no difference.
_GENERATION = 1
_LONGEST_LABEL = 60


def assignment_rows(
    cluster: str,
    as_of: datetime,
    groups: Iterable[Row],
    members: Iterable[Row],
    partition_counts: Mapping[str, int | None],
    produce_rates: Rates,
) -> list[dict[str, Any]]:
    """A row of ``assignments`` for each group of one sample of a cluster whose assignment is settled.

    ``groups`` and ``members`` are raw rows of that sample, ``partition_counts`` the partitions of each topic (None or
    missing is unknown) and ``produce_rates`` the records written per second to each topic-partition (likewise). Groups
    that are empty, unreadable or rebalancing have no row: who owns what is not settled there.

    The description of a group does not say what its members subscribe to. Each is taken to subscribe to every topic
    of which any member owns a partition: true of nearly every group, and a topic that no member owns cannot be seen.
    """
    by_group: dict[str, list[Row]] = {}
    for member in members:
        by_group.setdefault(member["group"], []).append(member)
    rows = []
    for group in groups:
        its_members = by_group.get(group["group"])
        if its_members and group["state"] == GroupState.STABLE and group.get("error") is None:
            of_group = members_of(its_members)
            topics = {topic for member in of_group for topic in member.topics}
            queues = [p for p in produce_rates if p[0] in topics] if group.get("type") in QUEUE_TYPES else None
            view = assignment_view(of_group, partition_counts, produce_rates, group.get("assignor"), queues=queues)
            rows.append(assignment_row(cluster, group["group"], as_of, view, member_labels(its_members)))
    return sorted(rows, key=lambda row: row["group"])


def members_of(rows: Sequence[Row]) -> list[Member]:
    """The members of one group from their raw rows."""
    owned = {row["member_id"]: _owned(row) for row in rows}
    topics = frozenset(topic for partitions in owned.values() for topic, _ in partitions)
    return [
        Member(row["member_id"], topics, owned[row["member_id"]], row.get("static_instance_id") or None, _GENERATION)
        for row in rows
    ]


def _owned(row: Row) -> frozenset[Partition]:
    return frozenset((part["topic"], number) for part in row["assignment"] for number in part["partitions"])


def member_labels(rows: Sequence[Row]) -> dict[str, str]:
    """A name for each member by member id: its instance id or client id; where others have the same its host too, and
    where even that is shared the end of its member id."""
    names = {row["member_id"]: _plain(row.get("static_instance_id") or row.get("client_id") or "?") for row in rows}
    with_host = {row["member_id"]: f"{names[row['member_id']]} ({_plain(row.get('host') or '?')})" for row in rows}
    with_id = {member: f"{label[:-1]}, …{_plain(member)[-6:]})" for member, label in with_host.items()}
    alike, alike_with_host = Counter(names.values()), Counter(with_host.values())
    labels = {}
    for member, name in names.items():
        if alike[name] == 1:
            labels[member] = name
        else:
            labels[member] = with_host[member] if alike_with_host[with_host[member]] == 1 else with_id[member]
    return labels


def _plain(name: str) -> str:
    """Names come from clients: nothing that moves a cursor or fills a page."""
    text = "".join(character if character.isprintable() else "�" for character in name)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def assignment_row(
    cluster: str, group: str, as_of: datetime, view: AssignmentView, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The row of the table ``assignments`` for a view."""
    now = view.now
    topic, partition = view.hottest or (None, None)
    return {
        "cluster": cluster,
        "group": group,
        "as_of": as_of,
        "assignor": view.assignor,
        "members": now.members,
        "idle_members": now.idle_members,
        "partitions": view.partitions,
        "partitions_without_owner": view.partitions_without_owner,
        "skew_by_count": now.skew_by_count,
        "skew_by_rate": now.skew_by_rate,
        "busiest_member": None if now.busiest is None else labels[now.busiest],
        "busiest_share": now.busiest_share,
        "hottest_topic": topic,
        "hottest_partition": partition,
        "hottest_share": view.hottest_share,
        "bound_share": view.bound_share,
        "bound_cause": None if view.bound_cause is None else view.bound_cause.value,
        "attainable_share": view.attainable_share,
        "useful_members": view.useful_members,
        "alternatives": [_alternative(alternative) for alternative in view.alternatives],
        "sentences": list(findings(view, labels)),
    }


def _alternative(alternative: Alternative) -> dict[str, Any]:
    found: Figures = alternative.figures
    return {
        "assignor": alternative.assignor,
        "busiest_share": found.busiest_share,
        "skew_by_count": found.skew_by_count,
        "skew_by_rate": found.skew_by_rate,
        "idle_members": found.idle_members,
        "partitions_moved": alternative.partitions_moved,
        "rebalances": alternative.rebalances,
    }
