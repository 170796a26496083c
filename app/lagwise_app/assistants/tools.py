"""The questions of assistants, and their answers. Nothing here knows a transport."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from lagwise.config.visibility import Visibility
from lagwise.domain.vocabulary import display_rank
from lagwise.platform.errors import ConfigError, DatabaseError
from lagwise_app.answers import forecasts, groups, partitions
from lagwise_app.answers.capacity_models import GroupForecast, SizingAnswer, SizingInputs
from lagwise_app.answers.context import Context, stale_groups, team_of, with_freshness
from lagwise_app.answers.forecasts import CapacityUnknown
from lagwise_app.answers.groups import UnknownGroup
from lagwise_app.answers.models import OpenAlert
from lagwise_app.answers.sizing import CALLED_BY_TOOL, AboutGroup, sizing
from lagwise_app.answers.story import story
from lagwise_app.assistants import models
from lagwise_app.size.bad_question import BadQuestion

#: What an answer says in place of an answer: the assistant can ask again, and better.
REFUSALS = (UnknownGroup, CapacityUnknown, BadQuestion)
#: Lists of a story have at most so many rows.
_MOST_ROWS = 20
_DAY_SECONDS = 86_400.0

T = TypeVar("T")
Row = Mapping[str, Any]


def groups_in_trouble(
    context: Context, visibility: Visibility, cluster: str | None, search: str, limit: int
) -> models.GroupsInTrouble:
    """The groups that need attention. Raises LakeError."""
    seen = groups.matching(
        groups.visible_groups(context.lake, visibility), clusters=[cluster] if cluster is not None else ()
    )
    rows = groups.matching(seen, search=search)
    found = groups.in_trouble(rows)
    return models.GroupsInTrouble.model_validate(
        {
            "groups": [_described(context, row) for row in found[:limit]],
            "left_out": len(found[limit:]),
            "stale": stale_groups(context, seen),
            "groups_by_status": Counter(row["status"] for row in rows),
        }
    )


def group_story(context: Context, visibility: Visibility, cluster: str, name: str, hours: float) -> models.GroupStory:
    """What is known of a group. Raises UnknownGroup and LakeError."""
    row, now = groups.group(context.lake, cluster, name, visibility), context.clock()
    told, since = story(context.lake, cluster, name, now), now - timedelta(hours=hours)
    events = [event for event in told.events if event["at"] >= since]
    changes = [change for change in told.status_changes if change["at"] >= since]
    return models.GroupStory.model_validate(
        {
            "group": {**_described(context, row), "findings": row["findings"] or []},
            "partitions_by_status": row["partitions_by_status"],
            **_bounded("members", told.members),
            **_bounded("events", [models.few(event) for event in events]),
            **_bounded("status_changes", changes),
            "alerts": _alerts(context, visibility, cluster, name),
        }
    )


def partitions_of(
    context: Context, visibility: Visibility, cluster: str, name: str, topic: str | None, limit: int
) -> models.Partitions:
    """The partitions of a group, worst first. Raises UnknownGroup and LakeError."""
    rows = partitions.partitions(context.lake, cluster, name, visibility)
    found = [row for row in rows if topic is None or row["topic"] == topic]
    found.sort(key=lambda row: (display_rank(row["status"]), -(row["lag_seconds"] or 0.0), -(row["lag"] or 0)))
    return models.Partitions.model_validate({"partitions": found[:limit], "left_out": len(found[limit:])})


def what_if_sizing(
    context: Context,
    visibility: Visibility,
    about: AboutGroup | None,
    inputs: SizingInputs,
    horizon_days: float | None,
) -> SizingAnswer:
    """How many threads, nodes and partitions it takes. Raises what is in REFUSALS, and LakeError."""
    horizon_seconds = None if horizon_days is None else horizon_days * _DAY_SECONDS
    settings = context.config.analysis.capacity
    now = context.clock()
    return sizing(context.lake, settings, about, inputs, horizon_seconds, visibility, now, called=CALLED_BY_TOOL)


def forecast(
    context: Context, visibility: Visibility, about: AboutGroup, most_topics: int, most_days: int
) -> GroupForecast:
    """What will arrive, and until when the capacity is enough. Raises UnknownGroup, CapacityUnknown and LakeError."""
    return forecasts.forecast(
        context.lake,
        about.cluster,
        about.group,
        about.topic,
        visibility,
        context.clock(),
        most_topics=most_topics,
        most_days=most_days,
    )


def _described(context: Context, row: Row) -> dict[str, Any]:
    try:
        owners = context.owners()
    except ConfigError:
        owners = ()
    return with_freshness(context, row, team_of(owners, row))


def _bounded(name: str, rows: Sequence[T]) -> dict[str, Any]:
    return {name: rows[:_MOST_ROWS], f"{name}_left_out": len(rows[_MOST_ROWS:])}


def _alerts(context: Context, visibility: Visibility, cluster: str, name: str) -> list[dict[str, Any]] | None:
    try:
        found = context.alerts.alerts(visibility, context.clock())
    except DatabaseError:
        return None
    return [_alert(alert) for alert in found if (alert.cluster, alert.group) == (cluster, name)]


def _alert(alert: OpenAlert) -> dict[str, Any]:
    return {
        **alert.model_dump(),
        "acknowledged_by": None if alert.acknowledged is None else alert.acknowledged.by,
        "muted_until": None if alert.muted is None else alert.muted.until,
    }
