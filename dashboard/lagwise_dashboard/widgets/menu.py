"""The menu: a link to every page, which keeps the cluster, the group, the topic and the span that are looked at.

Streamlit's own menu forgets what stands in the address, so this one is made of links.
"""

import streamlit as st

from lagwise.links import pages
from lagwise.links.pages import Page
from lagwise_dashboard import address
from lagwise_dashboard.widgets import browser_window, zone_choice

ICONS: dict[Page, str] = {
    pages.OVERVIEW: ":material/format_list_bulleted:",
    pages.GROUP: ":material/monitoring:",
    pages.TOPIC: ":material/topic:",
    pages.RETENTION: ":material/hourglass_bottom:",
    pages.REBALANCES: ":material/sync_alt:",
    pages.ALERTS: ":material/notifications:",
    pages.CAPACITY: ":material/speed:",
    pages.PLAN: ":material/calculate:",
    pages.HEALTH: ":material/health_and_safety:",
}


def show(open_page: st.Page) -> None:
    """Draw the menu: a line of links, which a narrow window gets folded, with the choice of the time zone beside it.
    ``open_page`` is the page that is open."""
    if browser_window.is_narrow():
        with st.container(horizontal=True, horizontal_alignment="distribute"):
            with st.popover(address.current_page().title, icon=":material/menu:"):
                _links(open_page)
            zone_choice.choose()
    else:
        with st.container(horizontal=True, gap="small", key="menu"):
            _links(open_page)


def _links(open_page: st.Page) -> None:
    for page in pages.PAGES:
        # The link to the open page is marked; at the root that is another page of the same file.
        opens = open_page if page is address.current_page() else None
        address.page_link(page, page.title, icon=ICONS[page], opens=opens)
