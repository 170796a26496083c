"""Every name that may stand in the query of an address of the dashboard. A name means the same on every page.

Those in :data:`KEPT` select what is shown, how often it is refreshed and in which time zone: every page accepts them,
whether it uses them or not, and passes them on to the others.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Any

from lagwise.domain.simulation.scenario import DEFAULT_OUTAGE_SECONDS
from lagwise.domain.sizing.formulas import DEFAULT_OUTAGE_CATCH_UP_SECONDS
from lagwise.domain.sizing.ranges import MAX_CORES, MIN_CORES
from lagwise.domain.sizing.workload import (
    DEFAULT_CATCH_UP_SECONDS,
    DEFAULT_RESTART_SECONDS,
    DEFAULT_SHARE_OF_CEILING,
    MAX_PARTITIONS,
    Concurrency,
    Ordering,
    SizeBy,
)
from lagwise.domain.vocabulary import EventClass, Status
from lagwise.links.parameter_types import (
    ListParameters,
    Parameter,
    choice,
    choices,
    flag,
    list_parameters,
    moment,
    name,
    number,
    order,
    page_number,
    text,
    texts,
    whole,
)

# What is looked at

CLUSTER = text("cluster", "The cluster: of the group or the topic, and on pages of several clusters the only one.")
GROUP = name("group", "The consumer group.")
TOPIC = text("topic", "The topic.")
RANGE = choice(
    "range",
    "The span of time up to now that charts and lists of events show. By default 1h; for the rebalances of one group "
    "the shortest from 1h on that has any.",
    ("15m", "1h", "6h", "24h", "7d"),
    "",
)
FROM = moment("from", "Instead of `range`: the beginning of the span. Needs `to`.")
TO = moment("to", "Instead of `range`: the end of the span.")
REFRESH = choice(
    "refresh",
    "How often the page refreshes. By default as `dashboard.refresh_seconds` says.",
    ("5s", "15s", "1m", "5m"),
    "",
)
TIME_ZONE = choice(
    "time_zone",
    "The time zone of all times on the page: UTC, or that of each reader's browser. By default the team's "
    "(`dashboard.time_zone`), or UTC where the settings name none.",
    ("utc", "browser"),
    "",
)
#: Passed on from page to page.
KEPT: tuple[Parameter[Any], ...] = (CLUSTER, GROUP, TOPIC, RANGE, FROM, TO, REFRESH, TIME_ZONE)

# Filters and orders

SEARCH = text("q", "Only what has this text in its name: capitals and small letters are the same.")
STATUS = choices("status", "Only these statuses.", (status.value for status in Status))
OWNER = text("owner", "Only the groups of this team, as the alert rules name it.")
GROUP_SORT = order(
    "sort",
    "The order of the groups.",
    ("worst", "age", "lag", "catch_up", "in", "out", "loss", "since", "members", "name", "cluster"),
)
GROUPED_BY = choice(
    "by",
    "What the strip of all groups is grouped by; by default by nothing.",
    ("cluster", "topic", "owner", "host"),
    "",
)
SHOWN_AS = choice("as", "A table, or cards. By default a phone shows cards.", ("table", "cards"), "")


class GroupTab(StrEnum):
    """The parts that the page of a group is cut into, in the order in which they are offered."""

    HISTORY = "history"
    PARTITIONS = "partitions"
    MEMBERS = "members"
    COMMANDS = "commands"


TAB = choice(
    "tab",
    "The part of the group's page; by default the one whose list the address filters, sorts or turns to another page "
    "of, else `history`.",
    (tab.value for tab in GroupTab),
    "",
)
ALL_LANES = flag(
    "all_lanes",
    "Whether the timeline of rebalances has a lane for every member: also for those that come and go in a storm, and "
    "for more than 60.",
)
WITHIN = choice("within", "Only what is lost within this time.", ("1h", "6h", "24h", "7d", "any"), "any")

# Lists that may be longer than a page

_OF_GROUP = (CLUSTER, GROUP)
_IN_SPAN = (*_OF_GROUP, RANGE, FROM, TO)
_PAGE = page_number("page", "Which page of the groups; where a group or a topic is to be chosen, of the names.")
NAME_LIST = ListParameters(_PAGE, search=SEARCH)
GROUP_LIST = ListParameters(_PAGE, search=SEARCH, sort=GROUP_SORT, filters=(CLUSTER, STATUS, OWNER, SHOWN_AS))
QUIET_LIST = replace(GROUP_LIST, page=page_number("quiet_page", "Which page of the quiet groups."))
PARTITION_STATUS = choices(
    "partitions_status", "Only partitions of these statuses.", (status.value for status in Status)
)
WITH_LAG = choice("partitions_with", "`lag`: only partitions with unread records.", ("lag",), "")


class PartitionMeasure(StrEnum):
    """What the charts of partitions can show, in the order in which it is offered."""

    LAG = "lag"
    AGE = "age"
    RELATIVE = "relative"


MEASURE = choice(
    "partitions_by",
    "What the charts of partitions show: lag in records, the age of the oldest unread record, or how many times the "
    "median of the group's partitions a lag is.",
    (measure.value for measure in PartitionMeasure),
    PartitionMeasure.LAG.value,
)
PARTITION_LIST = list_parameters(
    "partitions",
    "partitions",
    searched="topic and number (`orders-12`), or in client or host of the owner",
    orders=(
        "worst", "age", "lag", "in", "out", "number", "topic", "owner", "committed", "unmoved", "log_start", "log_end",
        "loss", "lost",
    ),
    filters=(*_OF_GROUP, PARTITION_STATUS, WITH_LAG),
)  # fmt: skip
MEMBER_LIST = list_parameters(
    "members",
    "members",
    searched="client, host or id",
    orders=("owns", "status", "client", "host", "age", "lag", "in", "out", "static_id", "id"),
    filters=_OF_GROUP,
)
EVENT_CLASS = choices("events_kind", "Only events of these kinds.", (word.value for word in EventClass))
EVENT_LIST = list_parameters(
    "events", "events", searched="kind, status, topic, values, cause or members", filters=(*_IN_SPAN, EVENT_CLASS)
)
HOUR_LIST = list_parameters("hours", "hours with rebalances", filters=_IN_SPAN)
REBALANCE_LIST = list_parameters("rebalances", "rebalances", filters=_IN_SPAN)
READER_LIST = list_parameters(
    "readers",
    "readers",
    searched="the name of the group",
    orders=("loss", "status", "group", "age", "lag", "in", "out", "slowest", "partitions", "members"),
    filters=(CLUSTER, TOPIC),
)
TOPIC_PARTITION_LIST = list_parameters(
    "topic_partitions",
    "partitions",
    searched="number (`12`), leader (`leader 2`), queue or slowest reader",
    orders=("in", "number", "replicas", "leader", "log_start", "log_end", "reader", "behind"),
    filters=(CLUSTER, TOPIC),
)
LOSS_LIST = list_parameters(
    "losses",
    "losses",
    orders=("soonest", "status", "group", "topic", "unread", "age", "lost", "partitions", "cluster"),
    filters=(SEARCH, CLUSTER, WITHIN),
)
REBALANCED_LIST = list_parameters(
    "rebalanced",
    "groups that were rebalanced",
    orders=("storms", "group", "rebalances", "downtime", "moved", "joined", "left", "last", "cluster"),
    filters=(SEARCH, CLUSTER, RANGE, FROM, TO),
)
HEADROOM_LIST = list_parameters(
    "headroom",
    "verdicts",
    searched="the name of the group or the topic",
    orders=("soonest", "worst", "group", "topic", "used", "demand", "forecast", "can_do", "cluster"),
    filters=(CLUSTER,),
)
UNDECIDED_LIST = replace(HEADROOM_LIST, page=page_number("undecided_page", "Which page of the undecided verdicts."))
ENDED_LIST = list_parameters("ended", "alerts that ended", searched="group, cluster, rule or sentence")
DELIVERY_LIST = list_parameters(
    "deliveries", "deliveries", searched="channel, event, state, error, or the alert's group"
)
ACTION_LIST = list_parameters("actions", "actions", searched="who, what it was done to, or comment")

# The pages Capacity and Plan

_MAX_MS, _MAX_MINUTES, _MAX_SECONDS = 8.64e7, 43_200.0, 86_400.0
PEAK = number("peak_per_s", "Messages per second at peak.", 0.0, 1e12)
OBJECTIVE = number("objective_s", "How old the oldest unread message may become.", 0.0, _MAX_SECONDS)
SIZE_BY = choice("size_by", "Whether to size by the lag objective or by the peak.", (by.value for by in SizeBy), "")
PARTITIONS = whole("partitions", "Partitions of the topic.", 1, MAX_PARTITIONS)
HOTTEST = number("hottest_percent", "Share of the traffic in the hottest partition; 0 is even.", 0.0, 100.0)
MESSAGE_MS = number("message_ms", "Time per message as a whole, where T1 and T2 are not known apart.", 1e-6, _MAX_MS)
T1_MS = number("t1_ms", "T1: time per message spent waiting.", 0.0, _MAX_MS)
T2_MS = number("t2_ms", "T2: time per message on the CPU.", 0.0, _MAX_MS)
CORES = number("cores", "Cores of a node.", MIN_CORES, MAX_CORES)
CONCURRENCY = choice("concurrency", "How a node's threads get their messages.", (c.value for c in Concurrency), "")
ORDERING = choice("ordering", "The order that must be kept.", (o.value for o in Ordering), "")
UTILISATION = number("utilisation_percent", "How much of the capacity the demand may use.", 1.0, 100.0)
SPARE_NODES = whole("spare_nodes", "Nodes that may fail at once.", 0, 100, 1)
CATCH_UP = number(
    "catch_up_min",
    "Time in which the backlog of a restart must be gone.",
    1.0,
    _MAX_MINUTES,
    DEFAULT_CATCH_UP_SECONDS / 60.0,
)
RESTART = number("restart_s", "How long a restart reads nothing.", 0.0, _MAX_SECONDS, DEFAULT_RESTART_SECONDS)
SIZED_OUTAGE = number("sized_outage_min", "An outage at peak that is sized for.", 0.0, _MAX_MINUTES, 0.0)
OUTAGE_CATCH_UP = number(
    "outage_catch_up_min",
    "Time in which its backlog must be gone.",
    1.0,
    _MAX_MINUTES,
    DEFAULT_OUTAGE_CATCH_UP_SECONDS / 60.0,
)
CEILING = number(
    "ceiling_percent",
    "Share of its cores' ceiling that a node is given threads for.",
    1.0,
    99.9,
    100.0 * DEFAULT_SHARE_OF_CEILING,
)
BACKLOG = number("lag", "Messages that already wait.", 0.0, 1e15, 0.0)
MAX_THREADS = whole("max_threads", "No node is given more threads.", 1, 10_000)
WHAT_IF = choice("what_if", "What happens in the what-if.", ("outage", "rolling-restart"), "outage")
OUTAGE = number("outage_min", "How long the outage of the what-if lasts.", 0.0, 10_080.0, DEFAULT_OUTAGE_SECONDS / 60.0)
NODE_RESTART = number("node_restart_s", "How long each node is away in a rolling restart.", 0.0, _MAX_SECONDS, 60.0)
RUNNING_NODES = whole("running_nodes", "Nodes that run now.", 1, 1_000)
RUNNING_THREADS = whole("running_threads", "Threads per node.", 1, 10_000)
#: What the what-if asks.
OF_WHAT_IF: tuple[Parameter[Any], ...] = (WHAT_IF, OUTAGE, NODE_RESTART, RUNNING_NODES, RUNNING_THREADS)
SCENARIO = texts("scenario", "A scenario kept for comparison: its name and every input, as the page writes them.")
