"""Points of a chart that are links: a click on one opens its page.

Streamlit reports what a reader selects in a chart. That is no click, and a heat map has nothing to be selected.
"""

from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from lagwise_dashboard.widgets import component

_COMPONENT = component.declared("chart_links", Path(__file__).parent, "links")


def give(made: go.Figure, links: Sequence[str | None]) -> None:
    """Give a chart its links. A row of its heat maps leads to the link of that place, and any other point to the one at
    the place that its ``customdata`` says; None is no link."""
    made.update_layout(meta=links)


def follow() -> None:
    """Follow the links of the page's charts where they are clicked."""
    _COMPONENT(key="chart_links", data=None, height=1)
