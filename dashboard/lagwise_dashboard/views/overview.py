"""Who is in trouble? Every consumer group, the worst first; filters and order are in the address."""

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import Status
from lagwise_dashboard import owners, settings, words
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import empty, freshness, group_cards, group_table, page
from lagwise_dashboard.components.boundary import boundary
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.overview import Counts, Filters, Names

_TEXT, _CLUSTER, _OWNER, _SORT, _AS = "q", "only", "owner", "sort", "as"
#: Names among which those of a team are looked for.
_MOST_GROUPS_OF_ALL = 100_000
_TABLE_VIEW, _CARDS_VIEW = "Table", "Cards"
_CHIPS, _CHIPS_IN_URL = "overview_status", "overview_status_in_url"
_TABLE, _QUIET_TABLE, _QUIET = "groups", "quiet-groups", "overview_quiet"

_SORT_LABELS = {
    "worst": "Worst first",
    "age": "Oldest unread",
    "records": "Most lag",
    "in": "Most written",
    "out": "Most read",
    "loss": "Soonest loss",
    "since": "Latest change",
    "name": "Name",
}


@dataclass(frozen=True, slots=True)
class _Manner:
    """How groups are shown: ages as of ``now``, with the cluster's name or without, as cards or as a table."""

    now: datetime
    with_cluster: bool
    as_cards: bool


def body() -> None:
    now = settings.now()
    fresh = freshness.read(now)
    freshness.strip(fresh)
    if fresh.nothing_collected:
        empty.nothing_collected(fresh)
        return
    if fresh.as_of is None:
        empty.nothing_judged(fresh)
        return
    clusters = ask(overview.clusters)
    text, cluster, team, order = _inputs(clusters)
    among = _of_team(team)
    counts = ask(overview.counts, cluster, text, among)
    filters = Filters(_chips(counts), cluster, text, order, among)
    _lists(filters, counts, _Manner(now, len(clusters) > 1, _shown_as() == _CARDS_VIEW))


def _inputs(clusters: list[str]) -> tuple[str, str | None, str | None, str]:
    """The text, the cluster and the team (None: all) and the order asked for."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Search",
            key=_TEXT,
            bind="query-params",
            type="search",
            live=True,
            placeholder="Group or topic",
            label_visibility="collapsed",
            width=320,
        )
        cluster = None
        if len(clusters) > 1:
            cluster = st.selectbox(
                "Cluster",
                clusters,
                index=None,
                key=_CLUSTER,
                bind="query-params",
                placeholder="All clusters",
                label_visibility="collapsed",
                width=180,
            )
        team = _team()
        order = st.selectbox(
            "Order",
            list(_SORT_LABELS),
            key=_SORT,
            bind="query-params",
            format_func=lambda o: _SORT_LABELS[o],
            label_visibility="collapsed",
            width=180,
        )
    return text or "", cluster, team, order or "worst"


def _team() -> str | None:
    """The team whose groups are asked for; None is all. Without teams, or with rules that cannot be read, nobody is
    asked."""
    with boundary():
        known = owners.teams()
        if known:
            chosen: str | None = st.selectbox(
                "Owner",
                known,
                index=None,
                key=_OWNER,
                bind="query-params",
                placeholder="All owners",
                label_visibility="collapsed",
                width=180,
            )
            return chosen
    return None


def _of_team(team: str | None) -> Names | None:
    """The groups of a team, whatever their status; None is all groups."""
    if team is None:
        return None
    known = ask(overview.names, "", _MOST_GROUPS_OF_ALL)
    return tuple((r["cluster"], r["group"]) for r in known if owners.team_of(r["cluster"], r["group"]) == team)


def _chips(counts: Counts) -> tuple[str, ...]:
    """Counts by status, each a filter. Kept in the address by hand: bound, the address would hold the counts, too."""
    in_url = tuple(st.query_params.get_all("status"))
    if _CHIPS not in st.session_state or st.session_state.get(_CHIPS_IN_URL) != in_url:
        st.session_state[_CHIPS] = [s for s in words.DISPLAY_ORDER if s in in_url]
        st.session_state[_CHIPS_IN_URL] = in_url
    chosen = st.session_state[_CHIPS]
    shown = st.pills(
        "Status",
        [s for s in words.DISPLAY_ORDER if counts.by_status.get(s) or s in chosen],
        selection_mode="multi",
        key=_CHIPS,
        on_change=_chips_to_url,
        format_func=lambda s: _chip(s, counts),
        label_visibility="collapsed",
    )
    return tuple(str(s) for s in shown or ())


def _shown_as() -> str:
    """As a table, or as cards: that is what fits a phone, and what is read aloud well."""
    chosen = st.segmented_control(
        "Shown as",
        [_TABLE_VIEW, _CARDS_VIEW],
        default=_CARDS_VIEW if group_cards.is_phone() else _TABLE_VIEW,
        required=True,
        key=_AS,
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen or _TABLE_VIEW


def _chip(status: Status, counts: Counts) -> str:
    look = words.look(status)
    return f":{look.markdown}[{look.sign}] {look.word} **{counts.by_status.get(status, 0):,}**"


def _chips_to_url() -> None:
    chosen = [str(s) for s in st.session_state[_CHIPS]]
    st.session_state[_CHIPS_IN_URL] = tuple(chosen)
    if chosen:
        st.query_params["status"] = chosen
    elif "status" in st.query_params:
        del st.query_params["status"]


def _lists(filters: Filters, counts: Counts, manner: _Manner) -> None:
    """Groups that need a look, and the quiet ones folded below; chosen statuses unfold them."""
    quiet = None if filters.statuses else False
    rows = ask(overview.groups, filters, quiet=quiet)
    matching = (
        sum(counts.by_status.get(s, 0) for s in filters.statuses) if filters.statuses else counts.total - counts.quiet
    )
    if rows:
        shown = humanise.plural(len(rows), "group")
        if len(rows) < matching:
            shown = (
                f"The first {len(rows):,} of {humanise.plural(matching, 'group')}; narrow the search to see the rest"
            )
        st.caption(f"{shown}.")
        _show(rows, manner, _TABLE)
    elif filters.are_set and (filters.statuses or counts.total == 0):
        empty.no_match(_clear)
    elif counts.total == 0:
        empty.no_groups()
    else:
        st.success(
            f"All well: none of {humanise.plural(counts.total, 'group')} is in trouble.", icon=":material/check_circle:"
        )
    if not filters.statuses and counts.quiet:
        _folded(filters, counts, manner)


def _folded(filters: Filters, counts: Counts, manner: _Manner) -> None:
    kinds = ", ".join(
        f"{n:,} {words.look(s).word}{' without members' if s == Status.UNKNOWN else ''}"
        for s in words.DISPLAY_ORDER
        if (n := counts.quiet_by_status.get(s))
    )
    fold = st.expander(f"{humanise.plural(counts.quiet, 'quiet group')}: {kinds}", key=_QUIET, on_change="rerun")
    if fold.open:
        with fold:
            rows = ask(overview.groups, filters, quiet=True)
            if len(rows) < counts.quiet:
                st.caption(f"{len(rows):,} of {counts.quiet:,}. Narrow the search to see the rest.")
            _show(rows, manner, _QUIET_TABLE)


def _show(rows: list[Row], manner: _Manner, name: str) -> None:
    """The groups, as a table or as cards."""
    if manner.as_cards:
        group_cards.show(rows, manner.now, with_cluster=manner.with_cluster)
        if len(rows) > group_cards.MOST_CARDS:
            st.caption(f"The first {group_cards.MOST_CARDS}. Narrow the search, or choose the table, to see more.")
        return
    group_table.show(
        rows,
        manner.now,
        name=name,
        with_cluster=manner.with_cluster,
        order=st.session_state[_SORT],
        choose=_sort_by,
    )


def _sort_by(order: str) -> None:
    """Sorting is the database's: more rows may match than are shown."""
    st.session_state[_SORT] = order


def _clear() -> None:
    st.session_state[_TEXT] = ""
    st.session_state[_CLUSTER] = None
    st.session_state[_OWNER] = None
    st.session_state[_CHIPS] = []
    _chips_to_url()


page.show("Who is in trouble?", body, help_text="Every consumer group, the worst first.")
