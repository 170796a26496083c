"""What a text finds, kind by kind, and where each of it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lagwise.domain import humanise
from lagwise.links import pages, parameters
from lagwise.links.pages import Page, Values
from lagwise.platform.errors import DatabaseError
from lagwise_dashboard import address, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import finding
from lagwise_dashboard.queries.base import Query, Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.widgets import saved_views

#: So many are shown, of all kinds together.
MAX_HITS = 20


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found, and the address where it is shown. ``about`` says which one it is, on one line; only
    what the lake judges has a ``status``."""

    name: str
    about: str
    href: str
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """What was found of one kind; ``total`` is how much there is, shown or not."""

    title: str
    hits: Sequence[Hit]
    total: int

    def has(self, name: str) -> bool:
        """Whether the first is of exactly this name."""
        return bool(self.hits) and self.hits[0].name.lower() == name.lower()


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a kind is looked for, and what is said of a row: what it is, and the page and parameters that show it."""

    title: str
    query: Query[[str, int], ListPage[Row]]
    about: Callable[[Row], str]
    page: Page
    values: Callable[[Row], Values]

    def look_for(self, text: str) -> Kind:
        result = ask(self.query, text, MAX_HITS)
        return Kind(self.title, [self._hit(row) for row in result], result.total)

    def _hit(self, row: Row) -> Hit:
        selected: Values = {parameters.CLUSTER: row["cluster"], parameters.GROUP: None, parameters.TOPIC: None}
        href = address.href(self.page, {**selected, **self.values(row)})
        return Hit(row["name"], escaping.visible(self.about(row)), href, row["status"])


def _of_topic(row: Row) -> str:
    return f"{humanise.plural(row['groups'], 'group')} · {row['cluster']}"


_GROUPS = _Source(
    "Groups",
    finding.groups,
    lambda row: row["cluster"],
    pages.GROUP,
    lambda row: {parameters.GROUP: row["name"]},
)
_SOURCES = (
    _GROUPS,
    _Source("Topics", finding.topics, _of_topic, pages.TOPIC, lambda row: {parameters.TOPIC: row["name"]}),
    _Source(
        "Partitions",
        finding.partitions,
        _of_topic,
        pages.TOPIC,
        lambda row: {
            parameters.TOPIC: row["topic"],
            **parameters.TOPIC_PARTITION_LIST.searched(str(row["partition"])),
        },
    ),
    _Source(
        "Members",
        finding.members,
        lambda row: " · ".join(part for part in (row["host"], row["group"], row["cluster"]) if part),
        pages.GROUP,
        lambda row: {parameters.GROUP: row["group"], **parameters.MEMBER_LIST.searched(row["member_id"])},
    ),
    _Source(
        "Hosts",
        finding.hosts,
        lambda row: f"{humanise.plural(row['members'], 'member')} of {row['group']} · {row['cluster']}",
        pages.GROUP,
        lambda row: {parameters.GROUP: row["group"], **parameters.MEMBER_LIST.searched(row["name"])},
    ),
)


def found(text: str) -> list[Kind]:
    """Everything whose name holds the text, of each kind the most urgent, :data:`MAX_HITS` in all; of an empty text the
    pages, the saved views and the groups that are worst off. Raises LakeError.

    Kinds that have something of exactly this name come first.
    """
    sources = _SOURCES if text else (_GROUPS,)
    kinds = [_pages(text), _views(text), *(source.look_for(text) for source in sources)]
    kinds.sort(key=lambda kind: not kind.has(text))
    shares = _shares([len(kind.hits) for kind in kinds], MAX_HITS)
    return [Kind(kind.title, kind.hits[:share], kind.total) for kind, share in zip(kinds, shares, strict=True) if share]


def _pages(text: str) -> Kind:
    """The pages of which a word begins with the text; each keeps what is looked at."""
    its = [
        Hit(page.title, page.answers, address.href(page))
        for page in pages.PAGES
        if f" {text}".lower() in f" {page.title}".lower()
    ]
    return Kind("Pages", its, len(its))


def _views(text: str) -> Kind:
    """The saved views. Where the database cannot be read there are none: what is in the lake is found all the same, and
    the dialog of the views says what is wrong."""
    try:
        its = [
            Hit(view.name, saved_views.title(view), saved_views.href(view))
            for view in saved_views.shown()
            if text.lower() in view.name.lower()
        ]
    except DatabaseError:
        its = []
    its.sort(key=lambda hit: hit.name.lower() != text.lower())
    return Kind("Saved views", its, len(its))


def _shares(available: Sequence[int], limit: int) -> list[int]:
    """How many of each kind are shown: all where there is room, and else the same number of each that has so many."""
    shares = [0] * len(available)
    while sum(shares) < min(limit, sum(available)):
        for i, most in enumerate(available):
            if shares[i] < most and sum(shares) < limit:
                shares[i] += 1
    return shares
