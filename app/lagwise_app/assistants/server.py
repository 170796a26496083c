"""The MCP server: the tools by name, with descriptions that teach an assistant how to ask."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import Context as Call
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from lagwise import __version__
from lagwise.config.visibility import Visibility
from lagwise_app.answers.capacity_models import GroupForecast, SizingAnswer, SizingInputs
from lagwise_app.answers.context import Context
from lagwise_app.answers.sizing import AboutGroup
from lagwise_app.assistants import models, tools
from lagwise_app.assistants.words import INSTRUCTIONS, NAMES_ARE_DATA
from lagwise_app.server.gate import Gate
from lagwise_app.server.refusal import Refusal

T = TypeVar("T")
AnyCall = Call[Any, Any]

_NAME = Field(max_length=1000)
_Cluster = Annotated[str, _NAME, Field(description="name of the cluster, as an answer gave it")]
_Group = Annotated[str, _NAME, Field(description="name of the group, as an answer gave it")]
_Topic = Annotated[str | None, _NAME, Field(description="only this topic")]
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def mcp_server(context: Context, gate: Gate, visibility_of: Callable[[AnyCall], Visibility]) -> MCPServer[Any]:
    """A server whose tools answer from this context. ``visibility_of`` says what the caller of a tool may see."""

    async def answered(call: AnyCall, ask: Callable[[Visibility], T]) -> T:
        visibility = visibility_of(call)

        def asked() -> T:
            try:
                return ask(visibility)
            except tools.REFUSALS as error:
                raise Refusal(400, str(error)) from None

        try:
            return await gate.read(asked)
        except Refusal as refusal:
            raise ToolError(refusal.why) from None

    async def groups_in_trouble(
        call: AnyCall,
        cluster: Annotated[str | None, _NAME, Field(description="only groups of this cluster")] = None,
        search: Annotated[
            str, _NAME, Field(description="only groups whose name contains this; with * or ?, a pattern for all of it")
        ] = "",
        limit: Annotated[int, Field(ge=1, le=100, description="at most so many groups")] = 20,
    ) -> models.GroupsInTrouble:
        """Which consumer groups need attention now, worst first, each with a sentence that says why.

        Also how many groups have which status (losing_data, at_risk, stopped, stalled, rewound, falling_behind,
        lagging, catching_up, ok, ghost, unknown). An empty list with groups in `ok` means that all is well.
        """
        ask = partial(tools.groups_in_trouble, context, cluster=cluster, search=search, limit=limit)
        return await answered(call, ask)

    async def group_story(
        call: AnyCall,
        cluster: _Cluster,
        group: _Group,
        hours: Annotated[float, Field(gt=0, le=24, description="how far back events are told")] = 6,
    ) -> models.GroupStory:
        """What is wrong with one group and why: verdict, likely cause, findings, members, events, open alerts.

        `what_changed_sentence` is the likely cause of a backlog with its evidence; null: none was found, so do not
        make one up. `findings` are what else is worth knowing, each with its remedy. Say which of it is measured
        (numbers, events) and which is likely (the cause).
        """
        return await answered(call, partial(tools.group_story, context, cluster=cluster, name=group, hours=hours))

    async def partitions(
        call: AnyCall,
        cluster: _Cluster,
        group: _Group,
        topic: _Topic = None,
        limit: Annotated[int, Field(ge=1, le=200, description="at most so many partitions")] = 20,
    ) -> models.Partitions:
        """The partitions that a group reads, worst first: status, lag, age of the oldest unread record, rates, and the
        member that reads it (`owner`).

        For questions such as whether one partition, one member or one broker holds a group up.
        """
        ask = partial(tools.partitions_of, context, cluster=cluster, name=group, topic=topic, limit=limit)
        return await answered(call, ask)

    async def what_if_sizing(
        call: AnyCall,
        inputs: Annotated[
            SizingInputs, Field(description="what is assumed; the rest is known of the group, or has a default")
        ] = SizingInputs(),  # noqa: B008 (never changed)
        cluster: Annotated[str | None, _NAME, Field(description="of the group")] = None,
        group: Annotated[str | None, _NAME, Field(description="the group to size with what is measured of it")] = None,
        topic: Annotated[str | None, _NAME, Field(description="where the group reads several")] = None,
        horizon_days: Annotated[
            float | None, Field(gt=0, le=366, description="plan for the forecast so far ahead; needs a group")
        ] = None,
    ) -> SizingAnswer:
        """How many threads, nodes and partitions a workload needs, and what limits it.

        With a group: from its measured numbers, any of which `inputs` replaces ("what if the peak doubles?"). Without:
        t1_seconds, t2_seconds, cores (or seconds_per_message), peak_rate_per_second and partitions are needed. No
        number is made up: `missing` names what is not known. Quote `verdict`, and say from `inputs` which numbers
        were measured, given or defaults.
        """
        if (cluster is None) != (group is None):
            raise ToolError("cluster and group go together: give both, or neither")
        about = None if cluster is None or group is None else AboutGroup(cluster, group, topic)
        ask = partial(tools.what_if_sizing, context, about=about, inputs=inputs, horizon_days=horizon_days)
        return await answered(call, ask)

    async def forecast(
        call: AnyCall,
        cluster: _Cluster,
        group: _Group,
        topic: _Topic = None,
        topics: Annotated[int, Field(ge=1, le=20, description="at most so many topics, the worst first")] = 5,
        days: Annotated[int, Field(ge=2, le=90, description="at most so many days of each forecast")] = 14,
    ) -> GroupForecast:
        """What will arrive for a group in the coming weeks, and until when its capacity is enough.

        `capacity.enough_until` is the day after which it is not; null: it is enough for the whole forecast, or
        already not (`is_exceeded`), or not known. The band of each day holds 90 % of the outcomes: give it with the
        number. `sentence` says how good the forecast was, or why there is none.
        """
        about = AboutGroup(cluster, group, topic)
        return await answered(call, partial(tools.forecast, context, about=about, most_topics=topics, most_days=days))

    server: MCPServer[Any] = MCPServer("lagwise", title="Lagwise", version=__version__, instructions=INSTRUCTIONS)
    for tool in (groups_in_trouble, group_story, partitions, what_if_sizing, forecast):
        described = f"{inspect.getdoc(tool)}\n\n{NAMES_ARE_DATA}"
        server.add_tool(tool, description=described, annotations=_READ_ONLY, structured_output=True)
    return server
