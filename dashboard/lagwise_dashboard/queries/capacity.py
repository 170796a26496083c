"""Capacity of groups: the verdicts, a group's load in the recorded history, and the forecast of a topic."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.capacity.outlook import DayAhead, Outlook
from lagwise.domain.capacity.verdict import CapacityVerdict, busy_hours
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, days, first_row, reads, rows
from lagwise_dashboard.queries.expressions import rank
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: By the parameter `headroom_sort` of the address. A verdict that this version does not know comes first: it is not to
#: be overlooked.
ORDERS = Orders(
    {
        "worst": [f"coalesce({rank('verdict', CapacityVerdict)}, 0)", "enough_until"],
        "group": ['"group"'],
        "topic": ["topic"],
        "peak": ["peak_rate_per_second desc"],
        "forecast": ["forecast_peak_rate_per_second desc"],
        "cluster": ["cluster"],
    },
    key=["cluster", '"group"', "topic"],
)


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """A group's load as far as it is known; None is unknown."""

    #: Partitions the group reads, ghosts left out; topics, likewise.
    partitions: int
    topics: int
    #: The highest rate of records written per second to what it reads, and the rate not exceeded 99 % of the time.
    peak_rate_per_second: float | None
    usual_peak_rate_per_second: float | None
    #: How many rounds of the analysis knew the rate, and when the first and the last of them were.
    rounds: int
    first_at: datetime | None
    last_at: datetime | None
    #: Share of the traffic in its hottest partition, now; None unless every partition's rate is known.
    hottest_share: float | None
    #: Unread records now.
    lag: int | None


@reads(GROUP_STATUS, GROUP_HISTORY, PARTITION_STATUS)
def load(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> RecordedLoad | None:
    """The load of a group over a span; None if there is no such group."""
    row = first_row(
        lake,
        {GROUP_STATUS: None, GROUP_HISTORY: days(since, until), PARTITION_STATUS: None},
        """
        with history as (
            select max(produce_rate_per_second) as peak_rate_per_second,
                quantile_cont(produce_rate_per_second, 0.99) as usual_peak_rate_per_second,
                count(*) as rounds, min(as_of) as first_at, max(as_of) as last_at
            from group_history
            where cluster = $cluster and "group" = $group and as_of between $since and $until
                and produce_rate_per_second is not null
        ), spread as (
            select max(produce_rate_per_second) / nullif(sum(produce_rate_per_second), 0) as share,
                count(*) filter (produce_rate_per_second is null) as unknown
            from partition_status
            where cluster = $cluster and "group" = $group and status <> 'ghost'
        )
        select partitions, len(topics) as topics, lag, history.*, case when unknown = 0 then share end as hottest_share
        from group_status, history, spread
        where cluster = $cluster and "group" = $group limit 1
        """,
        {"cluster": cluster, "group": group, "since": since, "until": until},
    )
    return RecordedLoad(**row) if row else None


@reads(CAPACITY)
def headroom(lake: Lake, query: ListQuery = FIRST_PAGE) -> ListPage[Row]:
    """The verdicts on groups and topics whose names hold the text, where nothing else is asked for the worst and the
    soonest first; ``oldest`` is the time of the oldest one on all pages."""
    return page_of(
        lake,
        {CAPACITY: None},
        """select *, min(as_of) over () as oldest from capacity
            where contains(lower("group"), lower($text)) or contains(lower(topic), lower($text))""",
        {"text": query.text},
        query,
        ORDERS,
    )


@reads(CAPACITY)
def verdicts_of(lake: Lake, cluster: str, group: str) -> list[Row]:
    """A group's verdicts, one for each topic it reads, worst first; RocketMQ's retries (``%RETRY%…``) after what
    they are retries of."""
    return rows(
        lake,
        {CAPACITY: None},
        f"""select * from capacity where cluster = $cluster and "group" = $group
        order by starts_with(topic, '%'), {ORDERS.as_sql("worst")}""",  # noqa: S608 (our own constants)
        {"cluster": cluster, "group": group},
    )


#: Forecasts are made every hour; one that is older than this is no longer shown.
_NEWEST_FORECAST = timedelta(days=4)


@reads(DEMAND, FORECASTS)
def outlook(lake: Lake, cluster: str, topic: str, now: datetime) -> Outlook:
    """The newest forecast of a topic, day by day from now on. The first day (of 24 hours) is the one that has begun:
    its peak may still come."""
    about = {"cluster": cluster, "topic": topic}
    demand = first_row(lake, {DEMAND: None}, "select * from demand where cluster = $cluster and topic = $topic", about)
    if demand is None:
        return Outlook(None, ())
    ahead = rows(
        lake,
        {FORECASTS: days(now - _NEWEST_FORECAST, now)},
        """
        select "at", peak_low_per_second, peak_per_second, peak_high_per_second, busiest_per_second,
            busiest_high_per_second, low_per_second / nullif(produce_rate_per_second, 0) as low_share
        from forecasts where cluster = $cluster and topic = $topic
        qualify made_at = max(made_at) over ()
            and ("at" >= $now or peak_per_second is not null and "at" > $now - interval 24 hours)
        order by "at"
        """,
        about | {"now": now},
    )
    found = (
        DayAhead(row["at"], row["peak_low_per_second"], row["peak_per_second"], row["peak_high_per_second"])
        for row in ahead
        # With little history, hours are forecast, but not up to the horizon, and no peak is.
        if row["peak_per_second"] is not None and demand["forecast_peak_per_second"] is not None
    )
    hours = busy_hours(
        (row["at"], row["busiest_per_second"], row["busiest_high_per_second"]) for row in ahead if row["at"] >= now
    )
    low_shares = {row["at"]: row["low_share"] or 0.0 for row in ahead}
    return Outlook(demand, tuple(found), hours, low_shares)
