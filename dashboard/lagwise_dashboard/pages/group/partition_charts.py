"""How the partitions of a group moved: their median, the 95th percentile and the worst, and a heat map of each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from lagwise.links import pages, parameters
from lagwise.links.parameters import PartitionMeasure
from lagwise_dashboard import address, context, plot_theme
from lagwise_dashboard.address import Texts
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group import heat_map, tabs
from lagwise_dashboard.pages.group.measures import MEASURES, Measure
from lagwise_dashboard.plot_theme import Panel
from lagwise_dashboard.queries import partition_history as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets import chart_links, charts, time_range
from lagwise_dashboard.widgets.time_range import TimeRange

_SPREAD_HEIGHT = 110
#: Above the heat map: room for the times below the chart over it, and for its scale.
_HEAT_GAP = 72
#: Spans end on a whole step of this, so that browsers share one answer: partitions are kept by the minute.
_STEP_SECONDS = 60
#: Name, column and colour.
_LINES = (
    ("worst", "worst", plot_theme.SERIES[4]),
    ("95th percentile", "high", plot_theme.SERIES[2]),
    ("median", "median", plot_theme.LAG),
)
_MEDIAN_NOTE = (
    "Against the median shows skew: how many times the lag of the group's median partition a lag is. One record is "
    "added to both, so that a median of zero can be compared with. "
)


def show(row: Row, span: TimeRange) -> None:
    """Draw the charts of the group of a row of `group_status`, if it has several partitions."""
    if row["partitions"] < queries.MIN_PARTITIONS:
        return
    key = PartitionMeasure(address.get(parameters.MEASURE))
    measure = MEASURES[key]
    st.segmented_control(
        "Charts show",
        [one.value for one in PartitionMeasure],
        format_func=lambda word: MEASURES[PartitionMeasure(word)].label,
        label_visibility="collapsed",
        **address.bound(parameters.MEASURE, required=True),
    )
    until = span.until if span.is_zoom else context.rounded_up(span.until, _STEP_SECONDS)
    asked = (row["cluster"], row["group"], until - (span.until - span.since), until, key)
    spread = ask(queries.spread, *asked)
    if spread["worst"].null_count == spread.num_rows:
        st.caption(f"{measure.title}: unknown {span.words}.")
        return
    cells = ask(queries.cells, *asked)
    # Its links keep what is looked at: readers who look at the same share it, all others have their own.
    kept = address.link_parameters(pages.GROUP, {parameters.TAB: tabs.PARTITIONS, parameters.MEASURE: key})
    zoom = f"{row['cluster']}/{row['group']}/{key}/{span.name}"
    made = charts.made_once(_linked_chart, spread, cells, span, key, kept, zoom=zoom)
    time_range.chart(
        made,
        name="partition_history",
        alt=f"{measure.title}: median, 95th percentile and worst of the partitions, and a heat map of each",
    )
    with st.container(gap=None):
        st.caption(
            f"{_MEDIAN_NOTE if key is PartitionMeasure.RELATIVE else ''}{heat_map.caption(cells, measure)} A click on "
            "a cell or on a partition's number shows that partition alone in the table; a click on the lines, the one "
            "that was worst at that time."
        )
        chart_links.follow()


def _linked_chart(
    spread: pa.Table, cells: pa.Table, span: TimeRange, measure: PartitionMeasure, kept: Texts, *, zoom: str
) -> go.Figure:
    """The chart of a measure by its key, whose links lead to the table of one partition, below the same charts, and
    have the parameters ``kept`` as well."""

    def link(topic: str, partition: int) -> str:
        searched = parameters.PARTITION_LIST.searched(f"{topic}-{partition}")
        texts = kept | {parameter.name: parameter.written(value) for parameter, value in searched.items()}
        query = pages.query_string({name: given for name, given in texts.items() if given})
        return f"{pages.GROUP.path}?{query}"

    return chart(spread, cells, span, MEASURES[measure], link, zoom=zoom)


def chart(
    spread: pa.Table,
    cells: pa.Table,
    span: TimeRange,
    measure: Measure,
    link: Callable[[str, int], str],
    *,
    zoom: str,
) -> go.Figure:
    """The spread of the partitions (of :func:`queries.spread`) above their heat map (of :func:`queries.cells`), whose
    names and cells lead to the ``link`` of a topic and a number. The lines lead to that of the worst partition."""
    made = plot_theme.stack(
        [
            Panel(f"{measure.title}: median, 95th percentile and worst", _SPREAD_HEIGHT),
            Panel(f"{measure.title}, by partition", heat_map.height(cells), _HEAT_GAP),
        ],
        zoom=zoom,
    )
    links = heat_map.links(cells, link)
    points = plot_theme.with_gaps(spread)
    worst = _worst(points)
    # A partition that was worst at some time may share its row of the heat map: its link has a place of its own.
    places = {one: len(links) + i for i, one in enumerate(sorted(set(filter(None, worst))))}
    chart_links.give(made, [*links, *(link(*one) for one in places)])
    unit = measure.unit(max(value for value in points["worst"] if value is not None))
    for name, column, colour in _LINES:
        made.add_trace(
            plot_theme.packed_line(
                points["at"], [None if value is None else value / unit.scale for value in points[column]],
                name=name, line={"color": colour, "width": 1.8},
                customdata=[one and places[one] for one in worst] if column == "worst" else None,
                hovertemplate="%{y:" + unit.format + "}" + unit.suffix + "<extra>" + name + "</extra>",
            ),
            row=1, col=1,
        )  # fmt: skip
    first = next(at for at, value in zip(points["at"], points["worst"], strict=True) if value is not None)
    made.update_xaxes(range=[time_range.axis_start(span, first), span.until])
    made.update_yaxes(
        ticksuffix="" if measure is MEASURES[PartitionMeasure.LAG] else unit.suffix, nticks=4, row=1, col=1
    )
    heat_map.add(made, cells, measure, links, row=2)
    return made


def _worst(points: Mapping[str, Sequence[Any]]) -> list[tuple[str, int] | None]:
    """The topic and number of the worst partition at each time; None where none is known to have unread records."""
    columns = (points[name] for name in ("worst", "worst_topic", "worst_partition"))
    return [(topic, number) if value else None for value, topic, number in zip(*columns, strict=True)]
