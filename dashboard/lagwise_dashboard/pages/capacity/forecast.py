"""What will arrive: the forecast beside what the group can do today, or why there is none."""

from datetime import datetime

import streamlit as st

from lagwise.domain.capacity.outlook import Outlook, provenance, why_not
from lagwise_dashboard import escaping, plot_theme
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report import forecast_chart


def show(row: Row, outlook: Outlook, target: float, now: datetime) -> None:
    """The chart, or why there is none. ``target`` is the share of the capacity that may be used."""
    st.subheader("What will arrive", anchor=False)
    if not outlook.days:
        st.info(escaping.markdown(why_not(outlook)), icon=":material/show_chart:")
        return
    st.plotly_chart(
        forecast_chart.chart(row, outlook, target),
        key="capacity_forecast",
        config=plot_theme.CONFIG,
        alt="Forecast of the busiest minute of each day, with what the group can do today",
    )
    st.caption(escaping.markdown(provenance(outlook, now)))
