"""One of the first stops of the Tab key: past the menu, to the title of the page.

Streamlit's own link, the stop before, skips its header alone: the menu is a part of the page to it.
"""

from pathlib import Path

from lagwise_dashboard.widgets import component

_COMPONENT = component.declared("skip_link", Path(__file__).parent, "skip")


def show() -> None:
    """Draw the button, which is seen while it has the focus."""
    _COMPONENT(key="skip_link", data=None, width="content", height="content")
