"""The dashboard's entry: its pages and their addresses. Started by ``lagwise dashboard``."""

from pathlib import Path

import streamlit as st

from lagwise.addresses import pages
from lagwise_dashboard import address, identity
from lagwise_dashboard.components import menu, window
from lagwise_dashboard.components.boundary import boundary

_HERE = Path(__file__).resolve().parent
#: Streamlit serves a default page at the root alone: this one is there twice, at its own path as well.
_DEFAULT = pages.OVERVIEW

st.set_page_config(page_title="Lagwise", page_icon=str(_HERE / "assets" / "icon.png"), layout="wide")
st.logo(str(_HERE / "assets" / "lagwise.svg"), size="medium", link=None)
st.html(_HERE / "assets" / "page.css")
may_look = False
with boundary():
    identity.gate()
    may_look = True
if not may_look:  # who it is could not be told: what went wrong has been said
    st.stop()
_asked = st.navigation(
    [
        *(st.Page(address.script(page), title=page.title, url_path=page.path) for page in pages.PAGES),
        st.Page(address.script(_DEFAULT), title=_DEFAULT.title, url_path="root", default=True),
    ],
    position="hidden",
)
address.arrived(next((page for page in pages.PAGES if page.path == _asked.url_path), _DEFAULT))
menu.show(_asked)
_asked.run()
window.watch()
