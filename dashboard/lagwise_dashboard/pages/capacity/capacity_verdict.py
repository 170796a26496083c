"""What is known of a group's work on one topic: the verdict, its numbers, and what they rest on."""

from collections.abc import Callable
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.capacity.outlook import Outlook, why_not
from lagwise.domain.capacity.verdict import CapacityVerdict
from lagwise_dashboard import appearance, escaping, time_zone
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report import forecast_chart
from lagwise_dashboard.report.current_capacity import (
    SOURCES,
    can_do,
    enough_until,
    forecast_note,
    inputs,
    objective_label,
    per_second,
)
from lagwise_dashboard.widgets import charts, grid, tiles

_BOXES: dict[str, Callable[[str], object]] = {
    CapacityVerdict.SHORT: st.error,
    CapacityVerdict.TIGHT: st.warning,
    CapacityVerdict.ENOUGH: st.success,
}


def show(row: Row, now: datetime) -> None:
    """The sentence, loud as it deserves, the numbers below it, and every input."""
    _BOXES.get(row["verdict"], st.info)(
        f"**{escaping.markdown(appearance.of_capacity_verdict(row['verdict']).label)}** &nbsp; "
        f"{escaping.markdown(row['sentence'])}"
    )
    tiles.show(_metrics(row), name="capacity", missing_because="not measured yet")
    with st.expander("What this rests on"):
        _inputs(row, now)


def _source(row: Row) -> str:
    """Where the capacity is from, as Markdown."""
    return escaping.markdown(SOURCES.get(row["capacity_source"], row["capacity_source"]))


def _metrics(row: Row) -> list[tiles.Tile]:
    return [
        ("Peak so far", per_second(row["peak_rate_per_second"]), "Messages in the busiest minute of the history."),
        (
            f"{objective_label(row)}, so far",
            per_second(row["objective_rate_per_second"]),
            "The least capacity that would have kept the lag objective so far. The verdict compares it with what the "
            "group can do.",
        ),
        (
            f"{objective_label(row)}, with forecast",
            per_second(row["planned_objective_rate_per_second"]),
            "The least capacity that keeps the lag objective, at the upper end of what a week takes by the "
            "forecast, up to the highest minute so far or forecast. The advice carries it.",
        ),
        ("Can do", can_do(row), f"All members together, with this skew; {_source(row)}."),
        (
            "Forecast peak",
            per_second(row["forecast_peak_rate_per_second"]),
            "Messages in the busiest minute of the last week before the horizon.",
        ),
        (
            "Enough until",
            enough_until(row),
            "The day, in UTC, on which the forecast exceeds the capacity, less the target slack.",
        ),
        ("Confidence", row["confidence"], "How well supported the verdict is: see below."),
    ]


def _inputs(row: Row, now: datetime) -> None:
    grid.show(
        inputs(row, now),
        name="capacity-inputs",
        label="Every number that went into the verdict, where it is from, and how old it is",
        about=(row["cluster"], row["group"], row["topic"]),
    )
    st.caption(
        f"What it can do is {_source(row)}. As of {time_zone.clock_markdown(row['as_of'], now)}, "
        f"{humanise.since(row['as_of'], now)} ago."
    )


def show_forecast(row: Row, outlook: Outlook, target: float, now: datetime) -> None:
    """The chart, or why there is none. ``target`` is the share of the capacity that may be used."""
    st.subheader("What will arrive", anchor=False)
    if not outlook.days:
        st.info(escaping.markdown(why_not(outlook)), icon=":material/show_chart:")
        return
    charts.draw(
        forecast_chart.chart(row, outlook, target),
        key="capacity_forecast",
        alt="Forecast, day by day, with what the group can do today",
    )
    st.caption(escaping.markdown(forecast_note(row, outlook, now)))
