"""Who is in trouble? Every consumer group, worst first; filters and order are in the address."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import DISPLAY_ORDER, Status
from lagwise.links import parameters
from lagwise.links.parameter_types import REVERSED
from lagwise_dashboard import address, appearance, context, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.overview import fleet, group_list, owners
from lagwise_dashboard.pages.overview.group_list import ListStyle
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage, ListQuery
from lagwise_dashboard.queries.overview import GroupFilters, StatusCounts
from lagwise_dashboard.widgets import browser_window, empty_page, filters, list_view, page
from lagwise_dashboard.widgets.error_boundary import boundary

_TABLE_VIEW, _CARDS_VIEW = "table", "cards"

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


def body() -> None:
    now = context.now()
    if empty_page.fresh_data(now) is None:
        return
    clusters = ask(overview.clusters)
    cluster, text, team = address.get(parameters.CLUSTER), address.get(parameters.SEARCH), address.get(parameters.OWNER)
    with st.container(gap="xxsmall"):
        controls = st.container(horizontal=True, vertical_alignment="center", gap="small")
        with controls:
            _inputs(clusters)
        among = owners.groups_of(team)
        counts = ask(overview.counts, cluster or None, text, among)
        fleet.show(cluster or None, text, among)
        wanted = GroupFilters(address.get(parameters.STATUS), cluster or None, among)
        _lists(wanted, counts, controls, ListStyle(now, len(clusters) > 1, _shown_as() == _CARDS_VIEW))


def _inputs(clusters: list[str]) -> None:
    """The fields above the list."""
    order = address.get(parameters.GROUP_SORT)
    filters.search("Group or topic", width=260)
    filters.cluster(clusters)
    _team()
    fleet.grouping()
    st.selectbox(
        "Order",
        [*_SORT_LABELS, *([] if order in _SORT_LABELS else [order])],
        format_func=_order_label,
        label_visibility="collapsed",
        width=160,
        **address.bound(parameters.GROUP_SORT),
    )
    _view()


def _order_label(order: str) -> str:
    """The name of an order. Only the table's headings reverse one, so a reversed one is offered only while in use."""
    key = order.removeprefix(REVERSED)
    return _SORT_LABELS[key] if key == order else f"{_SORT_LABELS[key]}, reversed"


def _team() -> None:
    """A choice between the teams, if the rules can be read and name any."""
    with boundary():
        teams = owners.teams() | {address.get(parameters.OWNER)}
        if any(teams):
            st.selectbox(
                "Owner",
                sorted(teams - {""}),
                index=None,
                placeholder="All owners",
                label_visibility="collapsed",
                width=160,
                **address.bound(parameters.OWNER),
            )


def _shown_as() -> str:
    """As a table or as cards: what the address says, or what suits the window."""
    return address.get(parameters.SHOWN_AS) or (_CARDS_VIEW if browser_window.is_narrow() else _TABLE_VIEW)


def _view() -> None:
    """A choice between table and cards."""
    st.segmented_control(
        "Shown as",
        [_TABLE_VIEW, _CARDS_VIEW],
        format_func=str.capitalize,
        label_visibility="collapsed",
        **address.bound(parameters.SHOWN_AS, empty=_shown_as(), required=True),
    )


def _lists(wanted: GroupFilters, counts: StatusCounts, controls: Any, style: ListStyle) -> None:
    """Groups that need attention, and the quiet ones folded below; chosen statuses unfold them. How many there are
    stands next to the ``controls``."""
    quiet = None if wanted.statuses else False
    result = ask(overview.groups, wanted, list_view.query(parameters.GROUP_LIST, style.page_rows), quiet=quiet)
    if result:
        controls.caption(f"{result.counted('group')}.", width="content")
        group_list.show(parameters.GROUP_LIST, result, _reader(wanted, quiet=quiet), style, name="groups")
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


def _folded(wanted: GroupFilters, counts: StatusCounts, style: ListStyle) -> None:
    kinds = ", ".join(
        f"{n:,} {appearance.of_status(s).word}{' without members' if s == Status.UNKNOWN else ''}"
        for s in DISPLAY_ORDER
        if (n := counts.quiet_by_status.get(s))
    )
    fold = st.expander(
        f"{humanise.plural(counts.quiet, 'quiet group')}: {kinds}",
        expanded=address.get(parameters.QUIET_LIST.page) > 1,
        key="overview_quiet",
        on_change="rerun",
    )
    if fold.open:
        with fold:
            result = ask(overview.groups, wanted, list_view.query(parameters.QUIET_LIST, style.page_rows), quiet=True)
            if result.pages > 1:
                st.caption(f"{result.counted('quiet group')}.")
            group_list.show(parameters.QUIET_LIST, result, _reader(wanted, quiet=True), style, name="quiet-groups")


def _reader(wanted: GroupFilters, *, quiet: bool | None) -> Callable[[ListQuery], ListPage[Row]]:
    return lambda query: overview.groups(visibility.lake(), wanted, query, quiet=quiet)


def _clear() -> None:
    address.change(dict.fromkeys((parameters.SEARCH, parameters.CLUSTER, parameters.OWNER, parameters.STATUS)))


page.show(group_list.TITLE, body, help_text="Every consumer group, worst first.")
