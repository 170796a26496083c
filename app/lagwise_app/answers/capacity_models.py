"""The shape of the answers about capacity, and of what sizing is asked with."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy
from lagwise.tables.capacity import CAPACITY
from lagwise_app.answers.models import Answer, of_table

_DAY_SECONDS = 86_400.0
_Count = Annotated[int, Field(ge=0, le=1_000_000)]

#: The verdict on a group and one of its topics, without the advice, which sizing gives afresh.
VERDICT_COLUMNS = (
    "cluster", "group", "topic", "as_of", "verdict", "sentence", "is_exceeded", "enough_until", "size_by",
    "objective_seconds", "demand_per_second", "forecast_demand_per_second", "forecast_demand_high_per_second",
    "produce_rate_per_second", "peak_rate_per_second", "forecast_peak_rate_per_second", "capacity_low_per_second",
    "capacity_high_per_second", "capacity_source", "partitions", "members", "nodes", "unit", "lag", "binds", "change",
    "advice", "confidence",
)  # fmt: skip


class DayAhead(Answer):
    """A day to come."""

    at: datetime = Field(description="start of the day")
    low_per_second: float = Field(description="lower end of the 90 % interval")
    per_second: float = Field(description="messages per second: the busiest minute, or what the objective takes")
    high_per_second: float = Field(description="upper end of the 90 % interval")


class TopicForecast(Answer):
    """What will arrive on a topic, with the verdict on the group that reads it."""

    capacity: of_table(  # type: ignore[valid-type]  # made at run time
        "CapacityVerdict", "Whether a group can do what arrives on a topic.", CAPACITY, VERDICT_COLUMNS
    )
    sentence: str = Field(description="where the forecast is from and how good it was, or why there is none")
    by: SizeBy = Field(description="what the days are of: `peak`, the busiest minute, or `objective`, what it takes")
    days: list[DayAhead] = Field(description="evenly spread over the forecast, the first and the last among them")
    days_left_out: int = Field(description="further days of the forecast")


class GroupForecast(Answer):
    """What will arrive for a group, and until when its capacity is enough."""

    cluster: str
    group: str
    status: str
    seconds_to_catch_up: float | None = Field(description="until its lag is worked off as it goes; null: not soon")
    seconds_to_breach: float | None = Field(description="until its lag objective is missed")
    seconds_to_loss: float | None = Field(description="until retention deletes what it has not read")
    topics: list[TopicForecast] = Field(description="worst first; empty: the capacity is not known yet")
    topics_left_out: int = Field(description="further topics of the group")


class SizingInputs(BaseModel):
    """What sizing is asked with. What is not given is known of the group, or has a default."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    t1_seconds: float | None = None
    """T1: time per message spent waiting, as for I/O or a downstream."""
    t2_seconds: float | None = None
    """T2: time per message on the CPU."""
    cores: float | None = None
    """Cores of one node, or its CPU limit."""
    seconds_per_message: float | None = None
    """Total time per message, instead of T1, T2 and cores: sizes members with one thread each."""
    unit: Literal["member", "subtask"] | None = None
    """What handles a message in seconds_per_message: a member, or a subtask of a Flink job."""
    peak_rate_per_second: float | None = None
    """Messages per second at peak."""
    partitions: _Count | None = None
    """Partitions (queues) of the topic."""
    objective_rate_per_second: float | None = None
    """Messages per second that keep the lag objective; sized by in place of the peak."""
    objective_seconds: Annotated[float, Field(ge=0, le=366 * _DAY_SECONDS)] | None = None
    """The lag objective: how old the oldest unread message may become. Needs a group."""
    size_by: SizeBy | None = None
    """Whether to size by the lag objective or by the peak."""
    hottest_share: float | None = None
    """Share of the traffic in the hottest partition, 0 to 1."""
    target_utilisation: float | None = None
    """Share of the capacity that the demand may use, 0 to 1."""
    lag: float | None = None
    """Messages already waiting that must be worked off as well."""
    catch_up_seconds: float | None = None
    """Time to work off the backlog of a restart and the lag."""
    restart_seconds: float | None = None
    """Time without reading during a restart."""
    outage_seconds: float | None = None
    """Length of an outage at peak whose backlog has to be worked off as well."""
    outage_catch_up_seconds: float | None = None
    """Time to work off the backlog of the outage."""
    spare_nodes: _Count | None = None
    """Nodes that may fail at the same time."""
    concurrency: Concurrency | None = None
    """Whether every thread is a consumer, or one consumer per node feeds a pool of threads."""
    ordering: Ordering | None = None
    """Which messages must be handled in order."""
    share_of_ceiling: float | None = None
    """A node gets threads until it reaches this share of cores / T2."""
    max_threads_per_node: _Count | None = None
    """Maximum number of threads per node."""


class Triple(Answer):
    """A set-up, and what it can do."""

    partitions: int
    nodes: int = Field(description="nodes (or members, or subtasks), spare ones included")
    threads_per_node: int
    spare_nodes: int
    idle_threads: int = Field(description="threads that have nothing to do until a node fails")
    capacity_per_second: float = Field(description="messages per second that the nodes can do without the spare ones")


class Change(Answer):
    """A change that makes it enough."""

    kind: str
    sentence: str
    cost: str | None
    triple: Triple


class Input(Answer):
    """A number that went in."""

    value: float | int | str | None
    source: str = Field(description="given, default, settings, or how it was measured")


class Figure(Answer):
    """A number that was worked out."""

    value: float | None
    unit: str
    how: str


class Outcome(Answer):
    """What an outage does to a set-up."""

    set_up: str
    peak_lag: float | None
    peak_lag_seconds: float | None
    drain_seconds: float | None = Field(description="until the backlog is worked off; null: never")


class WhatIf(Answer):
    """The same outage with different set-ups."""

    question: str
    outcomes: list[Outcome]


class SizingAnswer(Answer):
    """How many threads, nodes and partitions it takes."""

    verdict: str = Field(description="the advice in a sentence or two, or what is missing for one")
    feasible: bool | None = Field(description="whether any number of nodes is enough; null: too little is known")
    triple: Triple | None
    binds: str | None = Field(
        description="what limits it: cpu, waiting, time, partitions, skew, ordering, downstream, demand"
    )
    changes: list[Change] = Field(description="changes that help, the cheapest first")
    inputs: dict[str, Input]
    figures: dict[str, Figure] = Field(description="the numbers behind the advice, each with how it was worked out")
    node: list[dict[str, Any]] = Field(description="what one node does with some numbers of threads")
    downstream_full: dict[str, Any] | None = Field(description="evidence that more threads would not help")
    missing: list[str] = Field(default=[], description="inputs that are not known")
    group: (
        of_table(  # type: ignore[valid-type]  # made at run time
            "SizedGroup", "The verdict on the group for what is asked.", CAPACITY, VERDICT_COLUMNS
        )
        | None
    ) = None
    load_test: str | None = Field(default=None, description="the load test that would show what the group can do")
    slots: dict[str, Any] | None = Field(default=None, description="task slots, of a Flink job")
    what_if: WhatIf | None = None
    ramp: list[dict[str, Any]] = Field(default=[], description="steps to get there, one node first")
