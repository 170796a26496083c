"""The pages of the dashboard: their addresses, what each reads from the query, and links to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from lagwise.links import parameters
from lagwise.links.parameter_types import ListParameters, Parameter

#: Values of an address by what they are; a default and None stand for nothing.
Values = Mapping[Parameter[Any], Any]
#: Reserved by Streamlit, which reads them itself.
_RESERVED = frozenset({"embed", "embed_options"})


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A page: the path of its address, its title, the question that it answers, what it reads from the query, and its
    lists that may be longer than a page of them.

    ``example`` is what the documentation shows.
    """

    path: str
    title: str
    answers: str
    reads: tuple[Parameter[Any], ...] = ()
    example: Values = field(default_factory=dict)
    lists: tuple[ListParameters, ...] = ()

    @property
    def uses(self) -> tuple[Parameter[Any], ...]:
        """All that it reads, that of its lists included."""
        return tuple(dict.fromkeys((*self.reads, *(p for one in self.lists for p in one.parameters))))

    @property
    def parameters(self) -> dict[str, Parameter[Any]]:
        """What the query may hold, by name: what the page uses, and what it keeps for others."""
        return {parameter.name: parameter for parameter in (*self.uses, *parameters.KEPT)}

    def restarted(self, changed: Iterable[Parameter[Any]]) -> tuple[Parameter[int], ...]:
        """The pages of the lists that start again where these parameters have changed."""
        changed = frozenset(changed)
        return tuple(one.page for one in self.lists if changed & one.follows)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something in the query that the page cannot use. ``allowed`` is None where the page does not know the name."""

    name: str
    texts: tuple[str, ...]
    allowed: str | None


_SPAN = (parameters.RANGE, parameters.FROM, parameters.TO)

OVERVIEW = Page(
    "overview",
    "Overview",
    "Who is in trouble?",
    (
        parameters.SEARCH,
        parameters.CLUSTER,
        parameters.OWNER,
        parameters.STATUS,
        parameters.GROUP_SORT,
        parameters.GROUPED_BY,
        parameters.SHOWN_AS,
    ),
    {
        parameters.STATUS: ("stopped",),
        parameters.SEARCH: "billing",
        parameters.CLUSTER: "prod",
        parameters.GROUP_SORT: "age",
    },
    (parameters.GROUP_LIST, parameters.QUIET_LIST),
)
GROUP = Page(
    "group",
    "Group",
    "What is wrong with one group, since when, why, and what to do?",
    (
        parameters.SEARCH,
        parameters.CLUSTER,
        parameters.GROUP,
        *_SPAN,
        parameters.TAB,
        parameters.PARTITION_STATUS,
        parameters.WITH_LAG,
        parameters.MEASURE,
        parameters.EVENT_CLASS,
    ),
    {parameters.CLUSTER: "prod", parameters.GROUP: "orders-fulfilment", parameters.RANGE: "6h"},
    (
        parameters.NAME_LIST,
        parameters.PARTITION_LIST,
        parameters.MEMBER_LIST,
        parameters.HOUR_LIST,
        parameters.EVENT_LIST,
    ),
)
TOPIC = Page(
    "topic",
    "Topic",
    "Who reads it, and does retention leave the slowest reader the time?",
    (parameters.SEARCH, parameters.CLUSTER, parameters.TOPIC, *_SPAN),
    {parameters.CLUSTER: "prod", parameters.TOPIC: "clicks"},
    (parameters.NAME_LIST, parameters.READER_LIST, parameters.TOPIC_PARTITION_LIST),
)
RETENTION = Page(
    "retention",
    "Retention risk",
    "What will be lost, soonest first?",
    (parameters.SEARCH, parameters.CLUSTER, parameters.WITHIN),
    {parameters.WITHIN: "6h"},
    (parameters.LOSS_LIST,),
)
REBALANCES = Page(
    "rebalances",
    "Rebalances",
    "Which groups are rebalanced again and again; who came, went and owned what?",
    (parameters.SEARCH, parameters.CLUSTER, parameters.GROUP, *_SPAN, parameters.ALL_LANES),
    {parameters.CLUSTER: "prod", parameters.GROUP: "orders-fulfilment"},
    (parameters.NAME_LIST, parameters.REBALANCED_LIST, parameters.HOUR_LIST, parameters.REBALANCE_LIST),
)
ALERTS = Page(
    "alerts",
    "Alerts",
    "What fires, and was anybody notified?",
    lists=(parameters.ENDED_LIST, parameters.DELIVERY_LIST, parameters.ACTION_LIST),
)
CAPACITY = Page(
    "capacity",
    "Capacity",
    "Which group runs out of capacity first? What can one do, until when is it enough, and what would be?",
    (parameters.CLUSTER, parameters.GROUP, parameters.TOPIC, *parameters.OF_WHAT_IF),
    {parameters.CLUSTER: "prod", parameters.GROUP: "checkout"},
    (parameters.HEADROOM_LIST, parameters.UNDECIDED_LIST),
)
PLAN = Page(
    "plan",
    "Plan",
    "How many threads, nodes and partitions does a workload need, a new one or a group's with other numbers?",
    (
        parameters.CLUSTER,
        parameters.GROUP,
        parameters.TOPIC,
        parameters.PEAK,
        parameters.SIZE_BY,
        parameters.OBJECTIVE,
        parameters.PARTITIONS,
        parameters.HOTTEST,
        parameters.MESSAGE_MS,
        parameters.T1_MS,
        parameters.T2_MS,
        parameters.CORES,
        parameters.CONCURRENCY,
        parameters.ORDERING,
        parameters.UTILISATION,
        parameters.SPARE_NODES,
        parameters.CATCH_UP,
        parameters.RESTART,
        parameters.SIZED_OUTAGE,
        parameters.OUTAGE_CATCH_UP,
        parameters.CEILING,
        parameters.BACKLOG,
        parameters.MAX_THREADS,
        *parameters.OF_WHAT_IF,
        parameters.SCENARIO,
    ),
    {parameters.CLUSTER: "prod", parameters.GROUP: "checkout", parameters.PEAK: 20_000.0},
)
HEALTH = Page("health", "Collector health", "Is Lagwise itself healthy?")

#: In the order of the menu.
PAGES = (OVERVIEW, GROUP, TOPIC, RETENTION, REBALANCES, ALERTS, CAPACITY, PLAN, HEALTH)


def texts_of(values: Values) -> dict[str, list[str]]:
    """The values as they stand in a query, by name; defaults are left out."""
    return {p.name: texts for p, value in values.items() if (texts := p.written(value))}


def query_string(texts: Mapping[str, Sequence[str]]) -> str:
    """A query as it stands in an address, safe with any name."""
    return urlencode(texts, doseq=True, quote_via=quote, safe="")


def link(page: Page, values: Values | None = None, *, base: str = "") -> str:
    """The address of a page that shows these values. ``base`` is where the dashboard is served.

    Raises ValueError for a value that the page would ignore.
    """
    texts = texts_of(values or {})
    if refused := ignored(page, texts):
        raise ValueError(f"the page {page.path} has no {refused[0].name}={refused[0].texts}")
    found = query_string(texts)
    return f"{base.rstrip('/')}/{page.path}" + (f"?{found}" if found else "")


def moved(path: str, query: str) -> str | None:
    """Where an address of an earlier version leads now, relative to the dashboard; None where it is no such address.

    The capacity page once read what is asked of the page Plan.
    """
    if path != CAPACITY.path:
        return None
    names = parse_qs(query, keep_blank_values=True).keys()
    return f"{PLAN.path}?{query}" if names & (PLAN.parameters.keys() - CAPACITY.parameters.keys()) else None


def ignored(page: Page, texts: Mapping[str, Sequence[str]]) -> list[Ignored]:
    """What of a query the page cannot use: names it does not have, and values it does not accept."""
    found = []
    for name, given in texts.items():
        parameter = page.parameters.get(name)
        if parameter is None:
            if name.lower() not in _RESERVED:
                found.append(Ignored(name, tuple(given), None))
            continue
        try:
            parameter.read(given)
        except ValueError:
            found.append(Ignored(name, tuple(given), parameter.allowed))
    return found
