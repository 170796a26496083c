"""What will arrive for a group, and until when its capacity is enough: as the Capacity page says it."""

from collections.abc import Sequence
from datetime import datetime

from lagwise.config.visibility import Visibility
from lagwise.domain.capacity.outlook import DayAhead, provenance
from lagwise.domain.sizing.workload import SizeBy
from lagwise.platform.logs import clean
from lagwise.tables.store import Lake
from lagwise.tables.topic_facts import days_by_verdict
from lagwise_app.answers import capacity_models as models
from lagwise_app.answers.groups import Row, group
from lagwise_dashboard.queries import capacity as queries


class CapacityUnknown(LookupError):
    """Nothing is known of the capacity of a visible group on this topic."""


def verdicts(lake: Lake, cluster: str, name: str, topic: str | None, visibility: Visibility) -> list[Row]:
    """The verdicts on a group, one for each of its topics or for one, worst first; none where it is too new.

    Raises UnknownGroup, CapacityUnknown where it does not read the topic, and LakeError.
    """
    group(lake, cluster, name, visibility)
    found = queries.verdicts_of(lake, cluster, name)
    if topic is None:
        return found
    found = [row for row in found if row["topic"] == topic]
    if not found:
        raise CapacityUnknown(f"nothing is known of the capacity of group {clean(name)!r} on topic {clean(topic)!r}")
    return found


def forecast(
    lake: Lake,
    cluster: str,
    name: str,
    topic: str | None,
    visibility: Visibility,
    now: datetime,
    *,
    most_topics: int,
    most_days: int,
) -> models.GroupForecast:
    """The forecast for a group, on all its topics or on one. Raises UnknownGroup, CapacityUnknown and LakeError."""
    row = group(lake, cluster, name, visibility)
    found = verdicts(lake, cluster, name, topic, visibility)
    return models.GroupForecast(
        cluster=cluster,
        group=name,
        status=row["status"],
        seconds_to_catch_up=row["seconds_to_catch_up"],
        seconds_to_breach=row["seconds_to_breach"],
        seconds_to_loss=row["seconds_to_loss"],
        topics=[_of_topic(lake, one, now, most_days) for one in found[:most_topics]],
        topics_left_out=max(0, len(found) - most_topics),
    )


def _of_topic(lake: Lake, verdict: Row, now: datetime, most_days: int) -> models.TopicForecast:
    outlook = queries.outlook(lake, verdict["cluster"], verdict["topic"], now)
    days, by = days_by_verdict(verdict, outlook)
    told = _spread(days, most_days)
    return models.TopicForecast.model_validate(
        {
            "capacity": verdict,
            "sentence": provenance(outlook, now, SizeBy(verdict["size_by"])),
            "by": by,
            "days": [
                {"at": day.at, "low_per_second": day.low, "per_second": day.peak, "high_per_second": day.high}
                for day in told
            ],
            "days_left_out": len(days) - len(told),
        }
    )


def _spread(days: Sequence[DayAhead], most: int) -> Sequence[DayAhead]:
    """At most so many (two or more) of the days, evenly spread, the first and the last among them."""
    if len(days) <= most:
        return days
    return [days[round(i * (len(days) - 1) / (most - 1))] for i in range(most)]
