"""Who is in trouble? Every consumer group, worst first; filters and order are in the address."""

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import DISPLAY_ORDER, Status
from lagwise.links import parameters
from lagwise.links.parameter_types import REVERSED, ListParameters
from lagwise_dashboard import address, appearance, context
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.overview import group_cards, group_table, owners
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import PAGE_ROWS, ListPage, ListQuery
from lagwise_dashboard.queries.overview import GroupFilters, GroupKeys, StatusCounts
from lagwise_dashboard.widgets import browser_window, empty_page, filters, list_view, page
from lagwise_dashboard.widgets.error_boundary import boundary

_TABLE_VIEW, _CARDS_VIEW = "table", "cards"
_TABLE, _QUIET_TABLE, _QUIET = "groups", "quiet-groups", "overview_quiet"

_SORT_LABELS = {
    "worst": "Worst first",
    "age": "Oldest unread",
    "lag": "Most lag",
    "catch_up": "Longest catch-up",
    "in": "Highest write rate",
    "out": "Highest read rate",
    "loss": "Soonest loss",
    "since": "Latest change",
    "members": "Most members",
    "name": "Name",
    "cluster": "Cluster",
}


@dataclass(frozen=True, slots=True)
class _ListStyle:
    """How groups are shown: ages as of ``now``, with the cluster's name or without, as cards or as a table."""

    now: datetime
    with_cluster: bool
    as_cards: bool

    @property
    def page_rows(self) -> int:
        """How many groups a page holds."""
        return group_cards.PAGE_CARDS if self.as_cards else PAGE_ROWS


def body() -> None:
    now = context.now()
    if empty_page.fresh_data(now) is None:
        return
    clusters = ask(overview.clusters)
    cluster, text, team = address.get(parameters.CLUSTER), address.get(parameters.SEARCH), address.get(parameters.OWNER)
    _inputs(clusters)
    among = _of_team(team)
    counts = ask(overview.counts, cluster or None, text, among)
    filters.statuses("Status", counts.by_status, parameters.STATUS)
    wanted = GroupFilters(address.get(parameters.STATUS), cluster or None, among)
    _lists(wanted, counts, _ListStyle(now, len(clusters) > 1, _view() == _CARDS_VIEW))


def _inputs(clusters: list[str]) -> None:
    """The fields above the list."""
    order = address.get(parameters.GROUP_SORT)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        filters.search("Group or topic")
        filters.cluster(clusters)
        _team()
        st.selectbox(
            "Order",
            [*_SORT_LABELS, *([] if order in _SORT_LABELS else [order])],
            format_func=_order_label,
            label_visibility="collapsed",
            width=180,
            **address.bound(parameters.GROUP_SORT),
        )


def _order_label(order: str) -> str:
    """Only the headings of the table turn an order round, so that the field names one only while it is in force."""
    key = order.removeprefix(REVERSED)
    return _SORT_LABELS[key] if key == order else f"{_SORT_LABELS[key]}, reversed"


def _team() -> None:
    """Without teams, or with rules that cannot be read, nobody is asked."""
    with boundary():
        known = owners.teams()
        wanted_team = address.get(parameters.OWNER)
        if known or wanted_team:
            st.selectbox(
                "Owner",
                sorted({*known, wanted_team} - {""}),
                index=None,
                placeholder="All owners",
                label_visibility="collapsed",
                width=180,
                **address.bound(parameters.OWNER),
            )


def _of_team(team: str) -> GroupKeys | None:
    """The groups of a team, whatever their status; None is all groups."""
    if not team:
        return None
    known = ask(overview.names, ListQuery().all_rows)
    return tuple((r["cluster"], r["group"]) for r in known if owners.team_of(r["cluster"], r["group"]) == team)


def _view() -> str:
    """As a table, or as cards: that is what fits a narrow window, and what is read aloud well."""
    usual = _CARDS_VIEW if browser_window.is_narrow() else _TABLE_VIEW
    st.segmented_control(
        "Shown as",
        [_TABLE_VIEW, _CARDS_VIEW],
        required=True,
        format_func=str.capitalize,
        label_visibility="collapsed",
        **address.bound(parameters.SHOWN_AS, empty=usual),
    )
    return address.get(parameters.SHOWN_AS) or usual


def _lists(wanted: GroupFilters, counts: StatusCounts, style: _ListStyle) -> None:
    """Groups that need a look, and the quiet ones folded below; chosen statuses unfold them."""
    quiet = None if wanted.statuses else False
    result = ask(overview.groups, wanted, list_view.query(parameters.GROUP_LIST, style.page_rows), quiet=quiet)
    if result:
        st.caption(f"{result.counted('group')}.")
        _show(result, wanted, style, parameters.GROUP_LIST, _TABLE, quiet=quiet)
    elif (wanted.are_set or address.get(parameters.SEARCH)) and (wanted.statuses or counts.total == 0):
        empty_page.no_match(_clear)
    elif counts.total == 0:
        empty_page.no_groups()
    else:
        st.success(
            f"All is well: none of {humanise.plural(counts.total, 'group')} is in trouble.",
            icon=":material/check_circle:",
        )
    if not wanted.statuses and counts.quiet:
        _folded(wanted, counts, style)


def _folded(wanted: GroupFilters, counts: StatusCounts, style: _ListStyle) -> None:
    kinds = ", ".join(
        f"{n:,} {appearance.of_status(s).word}{' without members' if s == Status.UNKNOWN else ''}"
        for s in DISPLAY_ORDER
        if (n := counts.quiet_by_status.get(s))
    )
    fold = st.expander(
        f"{humanise.plural(counts.quiet, 'quiet group')}: {kinds}",
        expanded=address.get(parameters.QUIET_LIST.page) > 1,
        key=_QUIET,
        on_change="rerun",
    )
    if fold.open:
        with fold:
            result = ask(overview.groups, wanted, list_view.query(parameters.QUIET_LIST, style.page_rows), quiet=True)
            if result.pages > 1:
                st.caption(f"{result.counted('quiet group')}.")
            _show(result, wanted, style, parameters.QUIET_LIST, _QUIET_TABLE, quiet=True)


def _show(
    result: ListPage[Row],
    wanted: GroupFilters,
    style: _ListStyle,
    listing: ListParameters,
    name: str,
    *,
    quiet: bool | None,
) -> None:
    """The groups of a list, as a table or as cards."""
    if style.as_cards:
        group_cards.show(result.rows, style.now, with_cluster=style.with_cluster)
        list_view.pagination(listing, result)
        return
    list_view.table(
        listing,
        result,
        lambda rows: group_table.columns(rows, style.now, with_cluster=style.with_cluster),
        lambda query: overview.groups(context.lake(), wanted, query, quiet=quiet),
        name=name,
        label="Consumer groups",
        orders=overview.ORDERS,
        links=address.group_links(result),
    )


def _clear() -> None:
    address.change(dict.fromkeys((parameters.SEARCH, parameters.CLUSTER, parameters.OWNER, parameters.STATUS)))


page.show("Who is in trouble?", body, help_text="Every consumer group, worst first.")
