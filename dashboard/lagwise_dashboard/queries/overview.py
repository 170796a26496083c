"""The list of groups: who is in trouble, and how many are in which status."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from lagwise.domain.vocabulary import DISPLAY_ORDER, QUIET_STATUSES, QUIET_UNKNOWN
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, first_column, reads, rows, run
from lagwise_dashboard.queries.expressions import WORST_FIRST, quoted, rank
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: A sparkline's longest span, and how many points it has at most.
TREND_SPAN = timedelta(hours=1)
TREND_POINTS = 30
#: Fewer would be drawn as a block, without a shape.
MIN_TREND_POINTS = 4

#: Letters of a sentence that the strip of all groups shows.
SENTENCE_START = 48

_NAME = ['lower("group")', '"group"', "cluster"]
#: By the parameter `sort` of the address.
ORDERS = Orders(
    {
        "worst": WORST_FIRST,
        "age": ["lag_seconds desc"],
        "lag": ["lag desc"],
        "catch_up": ["coalesce(seconds_to_catch_up, case when lag > 0 then 'inf'::double end) desc"],
        "in": ["produce_rate_per_second desc"],
        "out": ["consume_rate_per_second desc"],
        "loss": ["seconds_to_loss"],
        "since": ["since desc"],
        "members": ["members desc"],
        "name": _NAME,
        "cluster": ["cluster"],
    },
    key=_NAME,
)


def _is_for(reason: str, states: Iterable[str] | None) -> str:
    """That an unknown group is so for this reason, in one of these states (None: in any)."""
    is_so = f"coalesce(reason, '') = '{reason}'"
    return is_so if states is None else f"({is_so} and coalesce(state, '') in ({quoted(states)}))"


_QUIET_UNKNOWN = " or ".join(_is_for(reason, states) for reason, states in QUIET_UNKNOWN.items())
#: Groups that need no attention, as :func:`lagwise.domain.vocabulary.is_quiet` has it.
_QUIET = f"(status in ({quoted(QUIET_STATUSES)}) or (status = 'unknown' and ({_QUIET_UNKNOWN})))"
_MATCHES = """
    ($cluster is null or cluster = $cluster)
    and (contains(lower("group"), lower($text))
        or len(list_filter(topics, lambda t: contains(lower(t), lower($text)))) > 0)
    and ($among is null or list_contains($among, {'cluster': cluster, 'group': "group"}))
"""
#: Groups by cluster and name.
GroupKeys = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GroupFilters:
    """What the reader wants to see: no statuses means all.

    ``among`` are the only groups that are shown; None is all.
    """

    statuses: tuple[str, ...] = ()
    cluster: str | None = None
    among: GroupKeys | None = None

    @property
    def are_set(self) -> bool:
        return bool(self.statuses or self.cluster or self.among is not None)


@dataclass(frozen=True, slots=True)
class StatusCounts:
    """How many groups match: by status (the statuses' filter left out), and how many of each are quiet."""

    by_status: dict[str, int]
    quiet_by_status: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_status.values())

    @property
    def quiet(self) -> int:
        return sum(self.quiet_by_status.values())


class FleetGroup(NamedTuple):
    """A group in the strip of all groups. ``topic`` and ``host`` are those of its worst partition, where known.

    ``sentence`` is cut: it has one letter more than :data:`SENTENCE_START` where it goes on.
    """

    cluster: str
    group: str
    status: str
    is_quiet: bool
    sentence: str
    topic: str | None
    host: str | None


@reads(GROUP_STATUS)
def counts(lake: Lake, cluster: str | None, text: str, among: GroupKeys | None = None) -> StatusCounts:
    """How many groups of a cluster (None: of all) whose name holds the text are in which status; only those ``among``
    some, where given."""
    result = rows(
        lake,
        {GROUP_STATUS: None},
        f"""select status, count(*) as n, count(*) filter ({_QUIET}) as quiet
            from group_status where {_MATCHES} group by status""",  # noqa: S608 (our own constants)
        {"cluster": cluster, "text": text, "among": _as_structs(among)},
    )
    return StatusCounts({r["status"]: r["n"] for r in result}, {r["status"]: r["quiet"] for r in result if r["quiet"]})


@reads(GROUP_STATUS)
def fleet(lake: Lake, cluster: str | None, text: str, among: GroupKeys | None = None) -> list[FleetGroup]:
    """All groups that match, as :func:`counts` has them: the worst status first, and of one status by name, so that a
    group keeps its place while its lag moves. Hosts are left out: :func:`fleet_with_hosts` has them."""
    return _fleet(lake, cluster, text, among, "null::varchar", "")


@reads(GROUP_STATUS, PARTITION_STATUS)
def fleet_with_hosts(lake: Lake, cluster: str | None, text: str, among: GroupKeys | None = None) -> list[FleetGroup]:
    """The same with hosts. They rest on one more table, for which :func:`fleet` would be read once more a round."""
    joined = """left join partition_status on (
        partition_status.cluster = matching.cluster and partition_status."group" = matching."group"
        and partition_status.topic = worst_topic and partition_status.partition = worst_partition)"""
    return _fleet(lake, cluster, text, among, "host", joined, PARTITION_STATUS)


def _fleet(
    lake: Lake, cluster: str | None, text: str, among: GroupKeys | None, host: str, joined: str, *joins: Table
) -> list[FleetGroup]:
    result = run(
        lake,
        dict.fromkeys((GROUP_STATUS, *joins)),
        f"""
        with matching as (
            select cluster, "group", status, {_QUIET} as is_quiet, left(sentence, {SENTENCE_START + 1}) as sentence,
                coalesce(worst_topic, topics[1]) as topic, worst_topic, worst_partition
            from group_status where {_MATCHES}
        )
        select matching.cluster, matching."group", matching.status, is_quiet, sentence, matching.topic, {host}
        from matching {joined}
        order by {rank("matching.status", DISPLAY_ORDER)} nulls first, matching.cluster, matching."group"
        """,  # noqa: S608 (our own constants)
        {"cluster": cluster, "text": text, "among": _as_structs(among)},
    )
    return [FleetGroup(*row) for row in zip(*(column.to_pylist() for column in result.columns), strict=True)]


@reads(GROUP_STATUS)
def clusters(lake: Lake) -> list[str]:
    """Names of the clusters that have groups."""
    return first_column(
        lake, {GROUP_STATUS: None}, "select distinct cluster from group_status order by cluster limit 1000"
    )


@reads(GROUP_STATUS)
def names(lake: Lake, query: ListQuery) -> ListPage[Row]:
    """Cluster, name and status of groups whose name holds the text, worst first."""
    return page_of(
        lake,
        {GROUP_STATUS: None},
        """select cluster, "group", status, lag_seconds, lag from group_status
            where contains(lower("group"), lower($text))""",
        {"text": query.text},
        query,
        ORDERS,
    )


@reads(GROUP_STATUS)
def clusters_of(lake: Lake, group: str) -> list[str]:
    """The clusters that have a group of this name."""
    return first_column(
        lake,
        {GROUP_STATUS: None},
        'select distinct cluster from group_status where "group" = $group order by cluster',
        {"group": group},
    )


@reads(GROUP_STATUS, GROUP_HISTORY)
def groups(lake: Lake, filters: GroupFilters, query: ListQuery = FIRST_PAGE, *, quiet: bool | None) -> ListPage[Row]:
    """The groups that match, each with its ``trend``; the text is looked for in their names and those of their topics.

    ``quiet`` leaves in only the quiet ones, only the others, or (None) both. ``trend`` is the lag over
    the hour up to the newest analysis, or since the first one of that hour, in up to 30 points; stretches in which it
    was unknown are left out, and a group of which it was hardly ever known has none.
    """
    result = page_of(
        lake,
        {GROUP_STATUS: None},
        f"""
        select * from group_status
        where {_MATCHES}
            and (len($statuses) = 0 or list_contains($statuses, status))
            and ($quiet is null or {_QUIET} = $quiet)
        """,  # noqa: S608 (our own constants)
        {
            "statuses": list(filters.statuses),
            "cluster": filters.cluster,
            "text": query.text,
            "among": _as_structs(filters.among),
            "quiet": quiet,
        },
        query,
        ORDERS,
    )
    newest = first_column(lake, {GROUP_STATUS: None}, "select max(as_of) from group_status")[0] if result else None
    if newest is None:
        return result
    trends = _trends(lake, newest - TREND_SPAN, [(row["cluster"], row["group"]) for row in result])
    return replace(result, rows=[{**row, "trend": trends.get((row["cluster"], row["group"]))} for row in result])


def _trends(lake: Lake, since: datetime, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[float]]:
    """The trends of these groups, by cluster and name."""
    result = rows(
        lake,
        {GROUP_HISTORY: since},
        f"""
        with named as (
            select unnest($names, recursive := true)
        ), span as (
            select greatest(1, epoch(max(as_of)) - epoch(min(as_of))) / $points as width
            from group_history where as_of > $since
        ), buckets as (
            select cluster, "group", floor(epoch(as_of) / span.width) as bucket, max(lag) as lag
            from group_history semi join named using (cluster, "group") cross join span
            where as_of > $since and lag is not null
            group by all
        )
        select cluster, "group", list(lag order by bucket) as trend
        from buckets group by all having count(*) >= {MIN_TREND_POINTS}
        """,  # noqa: S608 (our own constants)
        {"names": _as_structs(names), "since": since, "points": TREND_POINTS},
    )
    return {(row["cluster"], row["group"]): row["trend"] for row in result}


def _as_structs(among: Sequence[tuple[str, str]] | None) -> list[dict[str, str]] | None:
    return None if among is None else [{"cluster": cluster, "group": group} for cluster, group in among]
