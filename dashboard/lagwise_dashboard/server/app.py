"""The dashboard's entry: its pages and their addresses. Started by ``lagwise dashboard``."""

from pathlib import Path

import streamlit as st

from lagwise.links import pages
from lagwise_dashboard import address, identity
from lagwise_dashboard.widgets import browser_window, finder, menu, skip_link, zone_choice
from lagwise_dashboard.widgets.error_boundary import boundary

_ASSETS = Path(__file__).resolve().parent.parent / "assets"
#: Streamlit serves a default page at the root alone: this one is there twice, at its own path as well.
_DEFAULT = pages.OVERVIEW

st.set_page_config(page_title="Lagwise", page_icon=str(_ASSETS / "icon.png"), layout="wide")
st.logo(str(_ASSETS / "lagwise.svg"), size="medium", link=None)
has_access = False
with boundary():
    identity.gate()
    has_access = True
if not has_access:  # the error is on the page
    st.stop()
_open_page = st.navigation(
    [
        *(st.Page(address.script(page), title=page.title, url_path=page.path) for page in pages.PAGES),
        st.Page(address.script(_DEFAULT), title=_DEFAULT.title, url_path="root", default=True),
    ],
    position="hidden",
)
address.set_current_page(next((page for page in pages.PAGES if page.path == _open_page.url_path), _DEFAULT))
zone_choice.use()
with st.container(key="skip_place"):
    skip_link.show()
with st.container(key="finder_place"):
    finder.show()
menu.show(_open_page)
_open_page.run()
browser_window.watch()
