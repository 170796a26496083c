"""Capacity of groups: the verdicts, a group's load in the recorded history, and the forecast of a topic."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from lagwise.domain.capacity.observed import Undecided
from lagwise.domain.capacity.outlook import DayAhead, Outlook
from lagwise.domain.capacity.verdict import CapacityVerdict, busy_hours
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS, OBSERVED_CAPACITY
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, days, first_row, reads, rows
from lagwise_dashboard.queries.expressions import quoted, rank
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: Why a verdict is undecided: no peak is known yet, or what keeps the observed capacity undecided.
NO_PEAK = "no_peak"
UNDECIDED_REASONS = (NO_PEAK, *Undecided)
#: A verdict that this version does not know comes first: it is not to be overlooked.
_WORST_FIRST = [f"coalesce({rank('verdict', CapacityVerdict)}, 0)", "enough_until"]
#: Stages of how soon capacity ends: too small already, without slack already, at a date, after the forecast, without a
#: forecast. Undecided verdicts follow, reason by reason.
_STAGE = f"""case
    when verdict = '{CapacityVerdict.UNDECIDED}' then 6 + coalesce({rank("undecided_because", UNDECIDED_REASONS)}, 0)
    when verdict not in ({quoted(CapacityVerdict)}) then 0
    when verdict = '{CapacityVerdict.SHORT}' then 1
    when is_exceeded then 2
    when enough_until is not null then 3
    when forecast_demand_per_second is not null then 4
    else 5 end"""
#: By the parameter `headroom_sort` of the address.
ORDERS = Orders(
    {
        "soonest": ["stage", "case when stage = 3 then enough_until end", "used_share desc"],
        "worst": _WORST_FIRST,
        "group": ['"group"'],
        "topic": ["topic"],
        "used": ["used_share desc"],
        "demand": ["demand_per_second desc"],
        "forecast": ["forecast_demand_per_second desc"],
        "can_do": ["capacity_low_per_second desc"],
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


@reads(CAPACITY, OBSERVED_CAPACITY)
def headroom(
    lake: Lake, cluster: str | None = None, query: ListQuery = FIRST_PAGE, *, undecided: bool | None = None
) -> ListPage[Row]:
    """The verdicts on groups and topics of a cluster (None: of all) whose names hold the text, where nothing else is
    asked for those first whose capacity ends soonest; only undecided ones, only others, or None for all.

    Columns beside those of the table: ``undecided_because`` is one of :data:`UNDECIDED_REASONS` or null, ``used_share``
    is today's demand as a share of the least that the group can do (infinite where that is nothing), and ``oldest`` the
    time of the oldest verdict on all pages.
    """
    return page_of(
        lake,
        {CAPACITY: None, OBSERVED_CAPACITY: None},
        _of_matching(
            "*, min(as_of) over () as oldest",
            "where $undecided is null or $undecided = (undecided_because is not null)",
        ),
        {"cluster": cluster, "text": query.text, "undecided": undecided},
        query,
        ORDERS,
    )


@reads(CAPACITY, OBSERVED_CAPACITY)
def undecided_reasons(lake: Lake, cluster: str | None, text: str) -> dict[str, int]:
    """How many of the verdicts on groups and topics of a cluster (None: of all) whose names hold the text are
    undecided: by reason, the commonest first."""
    found = rows(
        lake,
        {CAPACITY: None, OBSERVED_CAPACITY: None},
        _of_matching(
            "undecided_because, count(*) as number",
            "where undecided_because is not null group by all order by number desc, undecided_because",
        ),
        {"cluster": cluster, "text": text},
    )
    return {row["undecided_because"]: row["number"] for row in found}


def _of_matching(selected: str, rest: str) -> str:
    """A statement about the verdicts on groups and topics of a cluster whose names hold the text, with why those that
    are undecided are, how much of what they can do is used, and the stage."""
    return f"""
        with observed as (
            select cluster, "group", topic, any_value(reason) as reason
            from observed_capacity where member is null group by all
        ), verdicts as (
            select capacity.*, case
                    when verdict <> '{CapacityVerdict.UNDECIDED}' then null
                    when demand_per_second is null then '{NO_PEAK}'
                    else coalesce(reason, '{Undecided.NEVER_SATURATED}') end as undecided_because,
                case when capacity_low_per_second > 0 then demand_per_second / capacity_low_per_second
                    when demand_per_second > 0 then 'infinity'::double end as used_share
            from capacity left join observed using (cluster, "group", topic)
            where ($cluster is null or cluster = $cluster)
                and (contains(lower("group"), lower($text)) or contains(lower(topic), lower($text)))
        ), staged as (select *, {_STAGE} as stage from verdicts)
        select {selected} from staged {rest}
    """  # noqa: S608 (our own constants)


@reads(CAPACITY)
def verdicts_of(lake: Lake, cluster: str, group: str) -> list[Row]:
    """A group's verdicts, one for each topic it reads, worst first; RocketMQ's retries (``%RETRY%…``) after what
    they are retries of."""
    return rows(
        lake,
        {CAPACITY: None},
        f"""select * from capacity where cluster = $cluster and "group" = $group
        order by starts_with(topic, '%'), {", ".join(_WORST_FIRST)} nulls last, topic""",  # noqa: S608 (our own constants)
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
