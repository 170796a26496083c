"""What a first sight (first_sight.py) says. It is made by the functions that the page is made by, and of the same
answers, which the page then finds in the cache.
"""

import html
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from lagwise.links import pages, parameters
from lagwise.links.pages import Page
from lagwise.platform.errors import LagwiseError
from lagwise_dashboard import address, context, escaping, time_zone, visibility
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group import current_round, earlier_days, tabs, verdict
from lagwise_dashboard.pages.overview import fleet, fleet_strip, group_list, owners
from lagwise_dashboard.pages.overview.group_list import TITLE, ListStyle
from lagwise_dashboard.queries import group as group_queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.overview import GroupFilters
from lagwise_dashboard.widgets import component, freshness, list_view, tiles, zone_choice
from lagwise_dashboard.widgets import page as frame

#: A title in plain text, and what stands below it, as HTML.
_Part = tuple[str, str]


def of(page: Page, query: str, now: datetime) -> str:
    """The first sight of a page with this query (``a=1&b=2``), as HTML; empty where there is none: see
    :class:`lagwise_dashboard.server.first_sight.FirstSight`."""
    if context.config().dashboard.sign_in is not None:
        return ""
    try:
        with address.asked_for(page, query):
            return _whole(_MAKERS[page], now)
    except LagwiseError:  # which the page reports, in full
        return ""


def _whole(make: Callable[[datetime], _Part | None], now: datetime) -> str:
    if address.get(parameters.TIME_ZONE) == zone_choice.BROWSER:  # which only a page is told
        return ""
    zone_choice.use()
    fresh = freshness.read(now)
    if address.ignored() or fresh.as_of is None or fresh.stale or fresh.starting or fresh.trouble:
        return ""
    found = make(now)
    if found is None or visibility.lake().left_out:
        return ""
    title, body = found
    as_of = time_zone.clock(fresh.as_of, now)
    notes = (
        f'<p class="note"><b>{html.escape(escaping.visible(cluster))}</b>: {html.escape(escaping.visible(note))}</p>'
        for cluster, note in frame.cluster_notes()
    )
    head = f'<div class="head"><h2>{html.escape(title)}</h2><b>Data as of {html.escape(as_of)}</b></div>'
    return "".join((head, *notes, body))


def _group(now: datetime) -> _Part | None:
    cluster, name = address.get(parameters.CLUSTER), address.get(parameters.GROUP)
    if not cluster or not name:
        return None
    snapshot = current_round.read(cluster, name, tabs.HISTORY)
    if snapshot is None:
        return None
    row = snapshot.group
    told = verdict.of(row, now, earlier_days.sentence(row, now))
    numbers = tiles.known(verdict.tiles_of(snapshot, ask(group_queries.description, cluster, name, row["as_of"])))
    return escaping.visible(name), "".join(
        (
            f'<p class="verdict {told.gravity}"><b>{html.escape(told.status)}</b> &nbsp; {html.escape(told.sentence)}',
            f"<br>{html.escape(told.since)}</p>",
            '<dl class="numbers">',
            *(f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(value)}</dd></div>" for label, value, _ in numbers),
            "</dl>",
        )
    )


def _overview(now: datetime) -> _Part | None:
    cluster, text = address.get(parameters.CLUSTER) or None, address.get(parameters.SEARCH)
    among = owners.groups_of(address.get(parameters.OWNER))
    strip = fleet.of(cluster, text, among)
    wanted = GroupFilters(address.get(parameters.STATUS), cluster, among)
    style_of_list = ListStyle(now, len(ask(overview.clusters)) > 1, as_cards=False)
    asked = list_view.query(parameters.GROUP_LIST, style_of_list.page_rows)
    rows = ask(overview.groups, wanted, asked, quiet=None if wanted.statuses else False)
    if strip is None or not rows or address.get(parameters.SHOWN_AS) == "cards":
        return None
    return TITLE, "".join(
        (
            _component("fleet", fleet_strip.data_of(*strip), fleet_strip.height(*strip)),
            _component("table", group_list.table_data(parameters.GROUP_LIST, rows, style_of_list)),
        )
    )


def _component(name: str, data: dict[str, Any], height: int | None = None) -> str:
    """What the script of a component of ours draws, of the data that the page would give it."""
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    room = "" if height is None else f' style="height: {height}px"'
    return (
        f'<div class="{name}" data-script="./{component.path_of(name)}"{room}>'
        f'<script type="application/json">{written}</script></div>'
    )


_MAKERS: dict[Page, Callable[[datetime], _Part | None]] = {pages.OVERVIEW: _overview, pages.GROUP: _group}
