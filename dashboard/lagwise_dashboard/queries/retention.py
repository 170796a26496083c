"""What will be lost: unread records that retention deletes, and committed offsets that the broker forgets."""

from dataclasses import dataclass

from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.raw import TOPICS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, reads, rows
from lagwise_dashboard.queries.expressions import FIRST_LOSS, LAG_OF_SEVERAL, STATUS_RANK
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: By the parameter `losses_sort` of the address.
ORDERS = Orders(
    {
        "soonest": ["seconds_to_loss", "lag desc"],
        "status": ["rank"],
        "group": ['"group"'],
        "topic": ["topic"],
        "unread": ["lag desc"],
        "age": ["lag_seconds desc"],
        "lost": ["nullif(lost_at_least, 0) desc"],
        "partitions": ["partitions desc"],
        "cluster": ["cluster"],
    },
    key=['"group"', "topic", "cluster", "loss_cause"],
)
_AT_STAKE = """
    seconds_to_loss is not null and status <> 'ghost'
    and ($cluster is null or cluster = $cluster)
    and (contains(lower("group"), lower($text)) or contains(lower(topic), lower($text)))
"""


@dataclass(frozen=True, slots=True)
class LossCounts:
    """How many groups lose something: now, within the horizon asked about, or later."""

    now: int
    soon: int
    later: int


@reads(PARTITION_STATUS)
def counts(lake: Lake, cluster: str | None, text: str, horizon_seconds: float) -> LossCounts:
    """Groups by when they lose something first, of a cluster (None: of all), whose name or topic holds the text."""
    result = rows(
        lake,
        {PARTITION_STATUS: None},
        f"""
        with groups as (
            select min(seconds_to_loss) as seconds from partition_status where {_AT_STAKE} group by cluster, "group"
        )
        select count(*) filter (seconds <= 0) as now,
            count(*) filter (seconds > 0 and seconds <= $horizon) as soon,
            count(*) filter (seconds > $horizon) as later
        from groups
        """,  # noqa: S608 (our own constants)
        {"cluster": cluster, "text": text, "horizon": horizon_seconds},
    )
    return LossCounts(**result[0])


@reads(PARTITION_STATUS, TOPICS)
def losses(
    lake: Lake, cluster: str | None, text: str, within_seconds: float | None, query: ListQuery = FIRST_PAGE
) -> ListPage[Row]:
    """What each group will lose of each topic, soonest first where nothing else is asked for: one row a group, topic
    and cause. The text is looked for in the names of group and topic.

    ``partitions`` counts those that lose something, ``partition`` is the soonest; ``lag`` is what is unread in them,
    ``lost_at_least`` what is gone already. ``within_seconds`` leaves out what is lost later.
    """
    return page_of(
        lake,
        {PARTITION_STATUS: None, TOPICS: None},
        f"""
        with losses as (
            select cluster, "group", topic, loss_cause, max(as_of) as as_of,
                {FIRST_LOSS},
                arg_min(coalesce(seconds_to_loss_at_latest, -1), seconds_to_loss) as at_latest,
                arg_min(partition, seconds_to_loss) as partition,
                arg_min(status, seconds_to_loss) as status,
                count(*) as partitions, {LAG_OF_SEVERAL},
                sum(lost_at_least)::bigint as lost_at_least, sum(lost_at_most)::bigint as lost_at_most
            from partition_status where {_AT_STAKE} group by cluster, "group", topic, loss_cause
        ), retentions as (
            select cluster, topic, arg_max({{'ms': retention_ms, 'bytes': retention_bytes}}, sampled_at) as retention
            from topics group by cluster, topic
        )
        select losses.* exclude (at_latest), {STATUS_RANK} as rank,
            nullif(at_latest, -1) as seconds_to_loss_at_latest,
            retention.ms as retention_ms, retention.bytes as retention_bytes
        from losses left join retentions using (cluster, topic)
        where $within is null or seconds_to_loss <= $within
        """,  # noqa: S608 (our own constants)
        {"cluster": cluster, "text": text, "within": within_seconds},
        query,
        ORDERS,
    )
