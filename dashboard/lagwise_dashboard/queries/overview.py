"""The list of groups: who is in trouble, and how many are in which status."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.vocabulary import DISPLAY_ORDER, QUIET_STATUSES, QUIET_UNKNOWN_STATES
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, reads, rows
from lagwise_dashboard.queries.ordering import Orders, Term, Terms, falling, order_by, rising


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


#: Rows a page shows at most; the rest is counted.
MOST_GROUPS = 200
#: A sparkline's longest span, and how many points it has at most.
TREND_SPAN = timedelta(hours=1)
TREND_POINTS = 30
#: Fewer are drawn as a block, which tells nothing.
FEWEST_TREND_POINTS = 4

_WORST: Terms = (
    Term("list_position($ranks, status)"),
    Term("lag_seconds", descending=True),
    Term("lag", descending=True),
)
_NAME: Terms = (Term('lower("group")'), Term('"group"'), Term("cluster"))
_TIES: Terms = (*_WORST, *_NAME)
#: By the parameter `sort` of the address.
ORDERS: Orders = {
    "worst": _WORST,
    "age": falling("lag_seconds"),
    "lag": falling("lag"),
    "catch_up": falling("coalesce(seconds_to_catch_up, case when lag > 0 then 'inf'::double end)"),
    "in": falling("produce_rate_per_second"),
    "out": falling("consume_rate_per_second"),
    "loss": rising("seconds_to_loss"),
    "since": falling("since"),
    "members": falling("members"),
    "name": _NAME,
    "cluster": rising("cluster"),
}

#: Groups that need no attention, as :func:`lagwise.domain.vocabulary.is_quiet` has it.
_QUIET = (
    f"(status in ({_quoted(QUIET_STATUSES)})"
    f" or (status = 'unknown' and coalesce(state, '') in ({_quoted(QUIET_UNKNOWN_STATES)})))"
)
_MATCHES = """
    ($cluster is null or cluster = $cluster)
    and (contains(lower("group"), lower($text))
        or len(list_filter(topics, lambda t: contains(lower(t), lower($text)))) > 0)
    and ($among is null or list_contains($among, {'cluster': cluster, 'group': "group"}))
"""
#: Groups by cluster and name.
Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Filters:
    """What the reader wants to see: no statuses means all; the text is looked for in names of groups and topics.

    ``among`` are the only groups that are shown; None is all.
    """

    statuses: tuple[str, ...] = ()
    cluster: str | None = None
    text: str = ""
    order: str = "worst"
    among: Names | None = None

    @property
    def are_set(self) -> bool:
        return bool(self.statuses or self.cluster or self.text or self.among is not None)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many groups match: by status (the statuses' filter left out), and how many of each are quiet."""

    by_status: dict[str, int]
    quiet_by_status: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_status.values())

    @property
    def quiet(self) -> int:
        return sum(self.quiet_by_status.values())


@reads(GROUP_STATUS)
def counts(lake: Lake, cluster: str | None, text: str, among: Names | None = None) -> Counts:
    """How many groups of a cluster (None: of all) whose name holds the text are in which status; only those ``among``
    some, where given."""
    found = rows(
        lake,
        {GROUP_STATUS: None},
        f"""select status, count(*) as n, count(*) filter ({_QUIET}) as quiet
            from group_status where {_MATCHES} group by status""",  # noqa: S608 (our own constants)
        {"cluster": cluster, "text": text, "among": _named(among)},
    )
    return Counts({r["status"]: r["n"] for r in found}, {r["status"]: r["quiet"] for r in found if r["quiet"]})


@reads(GROUP_STATUS)
def clusters(lake: Lake) -> list[str]:
    """Names of the clusters that have groups."""
    found = rows(lake, {GROUP_STATUS: None}, "select distinct cluster from group_status order by cluster limit 1000")
    return [r["cluster"] for r in found]


@reads(GROUP_STATUS)
def names(lake: Lake, text: str, limit: int) -> list[Row]:
    """Cluster and name of groups whose name holds the text, worst first; ``of`` counts them all."""
    return rows(
        lake,
        {GROUP_STATUS: None},
        f"""select cluster, "group", status, count(*) over () as "of" from group_status
            where contains(lower("group"), lower($text)) order by {order_by(ORDERS, "worst", _TIES)} limit $limit""",  # noqa: S608 (our own constants)
        {"text": text, "limit": limit, "ranks": [str(s) for s in DISPLAY_ORDER]},
    )


@reads(GROUP_STATUS)
def clusters_of(lake: Lake, group: str) -> list[str]:
    """The clusters that have a group of this name."""
    found = rows(
        lake,
        {GROUP_STATUS: None},
        'select distinct cluster from group_status where "group" = $group order by cluster',
        {"group": group},
    )
    return [r["cluster"] for r in found]


@reads(GROUP_STATUS, GROUP_HISTORY)
def groups(lake: Lake, filters: Filters, *, quiet: bool | None, limit: int = MOST_GROUPS) -> list[Row]:
    """The groups that match, in the order asked for, each with its ``trend``.

    ``quiet`` leaves in only the quiet ones, only the others, or (None) both. ``trend`` is the age of the oldest unread
    record over the hour up to the newest analysis, or since the first one of that hour, in up to 30 points; stretches
    in which it was unknown are left out, and a group that was hardly ever known has none.
    """
    newest = _newest(lake)
    if newest is None:
        return []
    since = newest - TREND_SPAN
    parameters = {
        "ranks": [str(s) for s in DISPLAY_ORDER],
        "statuses": list(filters.statuses),
        "cluster": filters.cluster,
        "text": filters.text,
        "among": _named(filters.among),
        "quiet": quiet,
        "limit": limit,
        "since": since,
        "points": TREND_POINTS,
    }
    order = order_by(ORDERS, filters.order, _TIES)
    return rows(
        lake,
        {GROUP_STATUS: None, GROUP_HISTORY: since},
        f"""
        with page as (
            select * from group_status
            where {_MATCHES}
                and (len($statuses) = 0 or list_contains($statuses, status))
                and ($quiet is null or {_QUIET} = $quiet)
            order by {order} limit $limit
        ), span as (
            select greatest(1, epoch(max(as_of)) - epoch(min(as_of))) / $points as width
            from group_history where as_of > $since
        ), buckets as (
            select cluster, "group", floor(epoch(as_of) / span.width) as bucket, max(lag_seconds) as lag_seconds
            from group_history semi join page using (cluster, "group") cross join span
            where as_of > $since and lag_seconds is not null
            group by all
        ), trends as (
            select cluster, "group", list(lag_seconds order by bucket) as trend
            from buckets group by all having count(*) >= {FEWEST_TREND_POINTS}
        )
        select page.*, trend from page left join trends using (cluster, "group") order by {order}
        """,  # noqa: S608 (our own constants)
        parameters,
    )


def _named(among: Names | None) -> list[dict[str, str]] | None:
    return None if among is None else [{"cluster": cluster, "group": group} for cluster, group in among]


def _newest(lake: Lake) -> datetime | None:
    found = rows(lake, {GROUP_STATUS: None}, "select max(as_of) as newest from group_status")
    newest: datetime | None = found[0]["newest"]
    return newest
