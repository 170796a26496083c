"""Which groups cannot be read because partitions have no leader, and since when: the driver asks the latest sample, and
the events of the topics."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lagwise.domain.groups import GroupVerdict
from lagwise.domain.vocabulary import UnknownReason
from lagwise.domain.what_changed.change import Change
from lagwise.domain.what_changed.choice import LOOK_BACK
from lagwise.domain.what_changed.happenings import Leaderless, of_leaderless
from lagwise.tables.raw import WATERMARKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.behind import Behind, Group
from lagwise_spark.jobs.happenings import happenings_of
from lagwise_spark.jobs.progress import News

Row = Mapping[str, Any]


def without_leader(
    lake: Lake, verdicts: Mapping[Group, tuple[Row, GroupVerdict]], before: Collection[Group], news: Sequence[News]
) -> dict[Group, tuple[Leaderless, ...]]:
    """The topics that have partitions without a leader, of groups that are unreadable or could not be read for that
    ``before``, by cluster and group. Without such a group nothing is read."""
    asked = {
        group: verdict.topics
        for group, (_, verdict) in verdicts.items()
        if verdict.reason is UnknownReason.UNREADABLE or group in before
    }
    clusters = {cluster for cluster, _ in asked}
    found = {its.cluster: leaderless_topics(lake, its) for its in news if its.cluster in clusters}
    return {
        (cluster, group): tuple(its for its in found.get(cluster, ()) if its.topic in topics)
        for (cluster, group), topics in asked.items()
    }


def losses_of_leaders(lake: Lake, behind: Sequence[Behind]) -> dict[Group, list[Change]]:
    """Since when partitions of these groups have no leader, by cluster and group. What nobody can read is behind for no
    other reason, so only events are read, for any number of groups: a broker that fails leaves many behind at once."""
    if not behind:
        return {}
    _, events = happenings_of(lake, (), min(one.backlog.since for one in behind) - LOOK_BACK)
    found: dict[Group, list[Change]] = {}
    for one in behind:
        its_events = [e for its in one.leaderless for e in events[one.group[0], its.topic]]
        its_events = [e for e in its_events if e.at >= one.backlog.since - LOOK_BACK]
        found[one.group] = [*of_leaderless(one.leaderless, its_events, one.backlog.since, one.now)]
    return found


def leaderless_topics(lake: Lake, its: News) -> list[Leaderless]:
    """Topics of a cluster with partitions that have no leader in its latest sample. A source without leaders knows no
    replicas either."""
    found = lake.query(
        """
        select topic, count(*) filter (leader is null) as without_leader, count(*) as partitions from watermarks
        where cluster = $cluster and sample_id = $sample_id and replicas is not null
        group by topic having without_leader > 0 order by topic
        """,
        {"cluster": its.cluster, "sample_id": its.latest_id},
        over=[WATERMARKS],
        since=its.latest_from,
    )
    return [Leaderless(**row) for row in found.to_pylist()]
