"""All that happened to a group, in one order of time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from lagwise.domain.vocabulary import KINDS_OF_CLASS, EventClass, EventKind, RebalanceCause
from lagwise.tables.analysis import STATUS_CHANGES
from lagwise.tables.raw import EVENTS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, Tables, days, reads, rows
from lagwise_dashboard.queries.expressions import quoted
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: The kinds of events as they are shown; the search finds them by these words, too.
WORDS = {
    EventKind.REBALANCE: "Rebalance",
    EventKind.STATE_CHANGED: "State changed",
    EventKind.COMMIT_REWOUND: "Commit went back",
    EventKind.COMMIT_SKIPPED: "Commit skipped records",
    EventKind.OFFSETS_GONE: "Commits gone",
    EventKind.GROUP_GONE: "Group gone",
    EventKind.TOPIC_RECREATED: "Topic re-created",
    EventKind.TOPIC_GONE: "Topic gone",
    EventKind.PARTITIONS_ADDED: "Partitions added",
    EventKind.CONFIG_CHANGED: "Setting changed",
    EventKind.LEADERS_MOVED: "Leaders moved",
    EventKind.LEADERS_LOST: "Leaders lost",
    EventKind.LEADERS_RESTORED: "Leaders restored",
}
UNFINISHED_WORDS = "Rebalance under way"


class Scope(NamedTuple):
    """Whose events, and of which time: those of the group, and of the topics it reads."""

    cluster: str
    group: str
    topics: tuple[str, ...]
    since: datetime
    until: datetime


class Noted(NamedTuple):
    """Something that happened and is in no table of events: an alert, or a change in what was measured.

    ``text`` says what, in plain text. ``is_cause`` marks the likely cause of the group's backlog.
    """

    at: datetime
    event_class: EventClass
    text: str
    is_cause: bool = False


_CLASS_OF_KIND = " ".join(
    f"when kind in ({quoted(sorted(kinds))}) then '{event_class}'" for event_class, kinds in KINDS_OF_CLASS.items()
)
#: Distinct: a collector that was killed may have reported the same twice.
_LOG = f"""
    with noted as (
        select unnest($noted_at::timestamptz[]) as "at", unnest($noted_class::varchar[]) as event_class,
            unnest($noted_text::varchar[]) as text, unnest($noted_cause::boolean[]) as is_cause
    ), changes as (
        select * from (
            select "at", '{EventClass.STATUS}' as event_class, before, after, reason,
                lead("at") over (order by "at") as until_at
            from status_changes
            where cluster = $cluster and "group" = $group and topic is null and "at" >= $since
        ) where "at" <= $until
    ), occurred as (
        select distinct "at", kind, topic, partition, before, after, generation, cause, joined, "left",
            partitions_moved, duration_seconds,
            case {_CLASS_OF_KIND} when "group" is null then '{EventClass.TOPIC}' else '{EventClass.GROUP}' end
                as event_class
        from events
        where cluster = $cluster and "at" between $since and $until
            and ("group" = $group or ("group" is null and list_contains($topics, topic)))
    ), log as (
        select * from noted union all by name select * from changes union all by name select * from occurred
    )
"""  # noqa: S608 (our own constants)


@reads(STATUS_CHANGES, EVENTS)
def events(
    lake: Lake,
    scope: Scope,
    noted: tuple[Noted, ...] = (),
    query: ListQuery = FIRST_PAGE,
    classes: tuple[str, ...] = (),
) -> ListPage[Row]:
    """Changes of the group's status (``until_at`` is when the next one was, null of the newest), events, and what was
    ``noted`` besides, newest first; only those of some ``classes``, where given. Columns that a class does not have are
    null."""
    return page_of(
        lake,
        _tables(scope),
        f"""{_LOG}
        select * from log
        where (len($classes) = 0 or list_contains($classes, event_class))
            and contains(lower(replace(concat_ws(' ', event_class, kind, $words[list_position($kinds, kind)],
                case when cause = '{RebalanceCause.UNFINISHED}' then '{UNFINISHED_WORDS}' end, text,
                topic || coalesce('-' || partition, ''), before, after, reason, cause,
                array_to_string(joined, ' '), array_to_string("left", ' ')), '_', ' ')),
                lower(replace($text, '_', ' ')))
        """,  # noqa: S608 (our own constants)
        {
            **_parameters(scope, noted),
            "classes": list(classes),
            "text": query.text,
            "kinds": [str(kind) for kind in WORDS],
            "words": list(WORDS.values()),
        },
        query,
        Orders({"": ['"at" desc']}, key=["event_class", "kind", "topic", "partition", "text"]),
    )


@reads(STATUS_CHANGES, EVENTS)
def counts(lake: Lake, scope: Scope, noted: tuple[Noted, ...] = ()) -> dict[str, int]:
    """How many there are of each class, whatever is asked for."""
    found = rows(
        lake,
        _tables(scope),
        f"{_LOG} select event_class, count(*) as number from log group by event_class",  # noqa: S608 (our own text)
        _parameters(scope, noted),
    )
    return {row["event_class"]: row["number"] for row in found}


def _tables(scope: Scope) -> Tables:
    # The change that ended a status may lie after the span.
    return {STATUS_CHANGES: scope.since, EVENTS: days(scope.since, scope.until)}


def _parameters(scope: Scope, noted: Sequence[Noted]) -> dict[str, Any]:
    return {
        **scope._asdict(),
        "topics": list(scope.topics),
        "noted_at": [one.at for one in noted],
        "noted_class": [str(one.event_class) for one in noted],
        "noted_text": [one.text for one in noted],
        "noted_cause": [one.is_cause for one in noted],
    }
