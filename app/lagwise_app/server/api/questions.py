"""What the API can be asked: the addresses, their parameters, and what answers them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from lagwise.domain.vocabulary import Status
from lagwise.platform.errors import ConfigError
from lagwise_app.answers import capacity_models, forecasts, groups, models, partitions
from lagwise_app.answers.context import Context, stale_groups, team_of, with_freshness
from lagwise_app.answers.sizing import AboutGroup, sizing
from lagwise_app.answers.story import story
from lagwise_app.server.access import Caller
from lagwise_app.server.refusal import Refusal

T = TypeVar("T")

_DAY_SECONDS = 86_400.0


class Parameters(BaseModel):
    """Parameters of a query."""

    model_config = ConfigDict(extra="forbid")


class Paging(Parameters):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """At most this many."""
    offset: Annotated[int, Field(ge=0)] = 0
    """Leave out so many from the beginning."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    def of(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows of this page."""
        return rows[self.offset : self.offset + self.limit]


class GroupsQuery(Paging):
    """Which groups. Without parameters, all."""

    cluster: list[str] = []
    """Only groups of this cluster; may be given several times."""
    status: list[Status] = []
    """Only groups with this status; may be given several times."""
    owner: str | None = None
    """Only groups of this team, by `owners` in the file of the alert rules."""
    search: Annotated[str, Field(max_length=300)] = ""
    """Only groups whose name contains this, in any case; with `*` or `?`, a pattern for the whole name."""


class ForecastQuery(Parameters):
    """Of which topics, and how much of it."""

    topic: str | None = None
    """Only this topic."""
    topics: Annotated[int, Field(ge=1, le=100)] = 20
    """At most this many topics, worst first."""
    days: Annotated[int, Field(ge=2, le=366)] = 90
    """At most this many days of each forecast, evenly spread."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class SizingQuery(capacity_models.SizingInputs, Parameters):
    """What is assumed of a workload."""


class GroupSizingQuery(SizingQuery):
    """What is assumed in place of what is known of the group."""

    topic: str | None = None
    """The topic, where the group reads several."""
    horizon_seconds: Annotated[float, Field(gt=0, le=366 * _DAY_SECONDS)] | None = None
    """Plan for the forecast so far ahead; else for what arrives today."""


Ask = Callable[[Context, Caller, Mapping[str, str], Any], BaseModel]


@dataclass(frozen=True, slots=True)
class Question:
    """An address of the API. Names in braces are part of its path."""

    path: str
    #: Its name in the OpenAPI document, from which clients make the name of a function.
    name: str
    #: What it answers, in a line.
    summary: str
    answer: type[BaseModel]
    ask: Ask
    query: type[Parameters] = Parameters


def list_groups(context: Context, caller: Caller, _: Mapping[str, str], query: GroupsQuery) -> BaseModel:
    seen = groups.matching(groups.visible_groups(context.lake, caller.visibility), clusters=query.cluster)
    found = groups.matching(seen, statuses=query.status, search=query.search)
    try:
        owners = context.owners()
    except ConfigError as error:
        if query.owner is not None:
            raise Refusal(503, "the file of the alert rules, which names the owners, cannot be used") from error
        owners = ()
    if query.owner is not None:
        found = [row for row in found if team_of(owners, row) == query.owner]
    page = [with_freshness(context, row, team_of(owners, row)) for row in query.of(found)]
    return models.Groups.model_validate(
        {"groups": page, "stale": stale_groups(context, seen), "total": len(found), "offset": query.offset}
    )


def one_group(context: Context, caller: Caller, path: Mapping[str, str], _: Parameters) -> BaseModel:
    cluster, name = path["cluster"], path["group"]
    row = groups.group(context.lake, cluster, name, caller.visibility)
    told = story(context.lake, cluster, name, context.clock())
    try:
        team = team_of(context.owners(), row)
    except ConfigError:
        team = None
    return models.Group.model_validate(
        {
            **with_freshness(context, row, team),
            "findings": row["findings"] or [],
            "current_members": told.members,
            "events": told.events,
            "status_changes": told.status_changes,
        }
    )


def list_partitions(context: Context, caller: Caller, path: Mapping[str, str], query: Paging) -> BaseModel:
    found = partitions.partitions(context.lake, path["cluster"], path["group"], caller.visibility)
    return models.Partitions.model_validate(
        {"partitions": query.of(found), "total": len(found), "offset": query.offset}
    )


def list_alerts(context: Context, caller: Caller, _: Mapping[str, str], query: Paging) -> BaseModel:
    found = context.alerts.alerts(caller.visibility, context.clock())
    return models.Alerts(alerts=list(query.of(found)), total=len(found), offset=query.offset)


def list_silences(context: Context, caller: Caller, _: Mapping[str, str], query: Paging) -> BaseModel:
    visible = groups.visible_groups(context.lake, caller.visibility)
    known = {(row["cluster"], row["group"]) for row in visible}
    found = context.alerts.silences(caller.visibility, context.clock(), known)
    return models.Silences(silences=list(query.of(found)), total=len(found), offset=query.offset)


def group_forecast(context: Context, caller: Caller, path: Mapping[str, str], query: ForecastQuery) -> BaseModel:
    return forecasts.forecast(
        context.lake,
        path["cluster"],
        path["group"],
        query.topic,
        caller.visibility,
        context.clock(),
        most_topics=query.topics,
        most_days=query.days,
    )


def group_sizing(context: Context, caller: Caller, path: Mapping[str, str], query: GroupSizingQuery) -> BaseModel:
    about = AboutGroup(path["cluster"], path["group"], query.topic)
    return _sizing(context, caller, about, query, query.horizon_seconds)


def any_sizing(context: Context, caller: Caller, _: Mapping[str, str], query: SizingQuery) -> BaseModel:
    return _sizing(context, caller, None, query, None)


def _sizing(
    context: Context, caller: Caller, about: AboutGroup | None, query: SizingQuery, horizon_seconds: float | None
) -> BaseModel:
    given = query.model_dump(include=set(capacity_models.SizingInputs.model_fields), exclude_none=True)
    inputs = capacity_models.SizingInputs.model_validate(given)
    settings = context.config.analysis.capacity
    return sizing(context.lake, settings, about, inputs, horizon_seconds, caller.visibility, context.clock())


_GROUP = "/clusters/{cluster}/groups/{group}"
QUESTIONS = (
    Question("/groups", "listGroups", "Groups, worst first", models.Groups, list_groups, GroupsQuery),
    Question(_GROUP, "getGroup", "One group: verdict, numbers, members, events", models.Group, one_group),
    Question(
        f"{_GROUP}/partitions",
        "listPartitions",
        "The partitions of a group",
        models.Partitions,
        list_partitions,
        Paging,
    ),
    Question(
        f"{_GROUP}/forecast",
        "getForecast",
        "What will arrive for a group, and until when its capacity is enough",
        capacity_models.GroupForecast,
        group_forecast,
        ForecastQuery,
    ),
    Question(
        f"{_GROUP}/sizing",
        "sizeGroup",
        "How many threads, nodes and partitions a group needs",
        capacity_models.SizingAnswer,
        group_sizing,
        GroupSizingQuery,
    ),
    Question(
        "/sizing",
        "sizeWorkload",
        "How many threads, nodes and partitions any workload needs",
        capacity_models.SizingAnswer,
        any_sizing,
        SizingQuery,
    ),
    Question("/alerts", "listAlerts", "Open alerts, the most severe first", models.Alerts, list_alerts, Paging),
    Question("/silences", "listSilences", "Silences in force and to come", models.Silences, list_silences, Paging),
)
