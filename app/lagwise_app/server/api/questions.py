"""What the API can be asked: the addresses, their parameters, and what answers them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from lagwise.domain.vocabulary import Status
from lagwise.platform.errors import ConfigError
from lagwise_app.answers import forecasts, groups, models, partitions
from lagwise_app.answers.capacity_models import GroupForecast, SizingAnswer, SizingInputs
from lagwise_app.answers.context import Context, team_of, with_freshness
from lagwise_app.answers.sizing import AboutGroup, sizing
from lagwise_app.answers.story import story
from lagwise_app.server.access import Caller
from lagwise_app.server.refusal import Refusal

T = TypeVar("T")

_MAX_NAME = 300
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
    search: Annotated[str, Field(max_length=_MAX_NAME)] = ""
    """Only groups whose name contains this, in any case; with `*` or `?`, a pattern for the whole name."""


class ForecastQuery(Parameters):
    """Which part of a group's forecast."""

    topic: Annotated[str | None, Field(max_length=_MAX_NAME)] = None
    """Only this topic."""
    topics: Annotated[int, Field(ge=1, le=100)] = 20
    """At most so many topics, the worst first."""
    days: Annotated[int, Field(ge=2, le=90)] = 90
    """At most so many days of each forecast, evenly spread."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class SizingQuery(SizingInputs, Parameters):
    """What a workload of any kind is sized with."""

    def inputs(self) -> SizingInputs:
        """What sizing itself is asked with."""
        return SizingInputs.model_validate(self.model_dump(include=set(SizingInputs.model_fields)))


class GroupSizingQuery(SizingQuery):
    """What a group is sized with, instead of what is measured of it."""

    topic: Annotated[str | None, Field(max_length=_MAX_NAME)] = None
    """The topic, where the group reads several."""
    horizon_days: Annotated[float | None, Field(gt=0, le=90)] = None
    """Size for the peak that is forecast within this time."""


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
    found = groups.matching(
        groups.visible_groups(context.lake, caller.visibility),
        clusters=query.cluster,
        statuses=query.status,
        search=query.search,
    )
    try:
        owners = context.owners()
    except ConfigError as error:
        if query.owner is not None:
            raise Refusal(503, "the file of the alert rules, which names the owners, cannot be used") from error
        owners = ()
    if query.owner is not None:
        found = [row for row in found if team_of(owners, row) == query.owner]
    page = [with_freshness(context, row, team_of(owners, row)) for row in query.of(found)]
    return models.Groups.model_validate({"groups": page, "total": len(found), "offset": query.offset})


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


def forecast_of_group(context: Context, caller: Caller, path: Mapping[str, str], query: ForecastQuery) -> BaseModel:
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


def size_group(context: Context, caller: Caller, path: Mapping[str, str], query: GroupSizingQuery) -> BaseModel:
    days = query.horizon_days
    about = AboutGroup(path["cluster"], path["group"], query.topic)
    return _sized(context, caller, about, query, None if days is None else days * _DAY_SECONDS)


def size_workload(context: Context, caller: Caller, _: Mapping[str, str], query: SizingQuery) -> BaseModel:
    return _sized(context, caller, None, query, None)


def _sized(
    context: Context, caller: Caller, about: AboutGroup | None, query: SizingQuery, horizon_seconds: float | None
) -> SizingAnswer:
    settings = context.config.analysis.capacity
    return sizing(context.lake, settings, about, query.inputs(), horizon_seconds, caller.visibility, context.clock())


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
        GroupForecast,
        forecast_of_group,
        ForecastQuery,
    ),
    Question(
        f"{_GROUP}/sizing",
        "sizeGroup",
        "How many threads, nodes and partitions a group takes",
        SizingAnswer,
        size_group,
        GroupSizingQuery,
    ),
    Question(
        "/sizing",
        "sizeWorkload",
        "How many threads, nodes and partitions a workload takes",
        SizingAnswer,
        size_workload,
        SizingQuery,
    ),
    Question("/alerts", "listAlerts", "Open alerts, the most severe first", models.Alerts, list_alerts, Paging),
    Question("/silences", "listSilences", "Silences in force and to come", models.Silences, list_silences, Paging),
)
