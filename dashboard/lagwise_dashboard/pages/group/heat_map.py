"""A group's partitions as a heat map: a row for each, a stronger colour for more, so that outliers stand out."""

import html
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from lagwise_dashboard import escaping
from lagwise_dashboard.pages.group.measures import Measure
from lagwise_dashboard.queries import partition_history as queries
from lagwise_dashboard.queries.base import Row

#: Pixels: the height of a row of many and of few, and the height and width of the scale above them.
_ROW_HEIGHT, _TALL_ROW_HEIGHT, _SCALE_HEIGHT, _SCALE_WIDTH = 14, 20, 8, 260
_FEW_ROWS = 15
_MAX_NAME_LENGTH = 20
#: The scale is one hue over the page's own background, from invisible to opaque: no lag is the background itself and
#: much lag stands out, in light, in dark and on paper. The hue has a contrast of more than 4 with both backgrounds.
_COLOURS = ((0.0, "rgba(12,135,124,0)"), (1.0, "rgba(12,135,124,1)"))
_UNKNOWN = "rgba(128,128,128,0.28)"
#: Numbers on the scale that are nearer to each other than this share of it would overlap.
_MIN_TICK_DISTANCE = 0.18
#: In the colour of the text around it: no one colour can be read well on both backgrounds.
_LINK_STYLE = "fill: inherit; text-decoration: underline"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def height(cells: pa.Table) -> int:
    """Pixels that the rows take."""
    rows = len(_rows(cells))
    return rows * (_TALL_ROW_HEIGHT if rows <= _FEW_ROWS else _ROW_HEIGHT)


def caption(cells: pa.Table, measure: Measure) -> str:
    """What the heat map shows, in sentences."""
    text = f"A stronger colour means {measure.more}, and grey means unknown."
    rows = _rows(cells)
    shared = [row["partitions"] for row in _shared(rows)]
    if not shared:
        return text
    return (
        f"{text} Of {sum(row['partitions'] for row in rows):,} partitions, the {queries.WORST_ROWS} that were worst in "
        f"this span have a row each, worst first. The other {sum(shared):,} share the {len(shared)} rows below, up to "
        f"{max(shared):,} in a row, ordered by topic and number; such a row shows the worst of them."
    )


def links(cells: pa.Table, link: Callable[[str, int], str]) -> list[str | None]:
    """Where each row leads, from the top on: to the ``link`` of its partition; None where several share it."""
    return [link(row["topic"], row["partition"]) if row["partitions"] == 1 else None for row in _rows(cells)]


def add(made: go.Figure, cells: pa.Table, measure: Measure, links: Sequence[str | None], *, row: int) -> None:
    """Draw the cells into this row of a stack of charts, and their scale above it. The names of partitions lead to the
    ``links`` of :func:`links`."""
    line, bucket = cells["line"].to_numpy(), cells["bucket"].to_numpy()
    rows, first, width = _rows(cells), int(bucket.min()), cells["width_seconds"][0].as_py()
    # As arrays of numbers: lists would be looked through number by number, and sent as text.
    values = np.full((len(rows), bucket.max() - first + 1), np.nan, np.float32)
    values[line, bucket - first] = cells["value"].to_numpy(zero_copy_only=False)
    middles = [_EPOCH + timedelta(seconds=(first + i + 0.5) * width) for i in range(values.shape[1])]
    most = max(measure.min_most, 0.0 if np.isnan(values).all() else float(np.nanmax(values)))
    unit, axis, ticks = measure.unit(most), made.layout[f"yaxis{row}"], _ticks(most, measure)
    made.add_trace(
        go.Heatmap(
            x=middles, z=np.where(np.isnan(values), 1.0, np.nan), colorscale=((0, _UNKNOWN), (1, _UNKNOWN)),
            showscale=False, hoverongaps=False, ygap=1, hovertemplate="%{y}: unknown<extra></extra>",
        ),
        row=row, col=1,
    )  # fmt: skip
    made.add_trace(
        go.Heatmap(
            x=middles, z=measure.strength(values), zmin=measure.strength(measure.least), zmax=measure.strength(most),
            colorscale=_COLOURS, customdata=values / unit.scale, hoverongaps=False, ygap=1,
            hovertemplate="%{y}: %{customdata:" + unit.format + "}" + unit.suffix + "<extra></extra>",
            colorbar={
                "orientation": "h", "x": 1, "xanchor": "right", "y": axis.domain[1], "yanchor": "bottom", "ypad": 2,
                "xpad": 16, "thickness": _SCALE_HEIGHT, "lenmode": "pixels", "len": _SCALE_WIDTH, "outlinewidth": 1,
                "tickvals": [measure.strength(n) for n in ticks], "ticktext": [measure.words(n) for n in ticks],
                "ticklabelposition": "outside top",
            },
        ),
        row=row, col=1,
    )  # fmt: skip
    made.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=_names(rows, links), range=[len(rows) - 0.5, -0.5],
        rangemode="normal", showgrid=False, row=row, col=1,
    )  # fmt: skip
    made.update_xaxes(showgrid=False, row=row, col=1)


def _ticks(most: float, measure: Measure) -> list[float]:
    """Numbers for the scale: its ends, and those between them for which there is room."""
    start, end = measure.strength(measure.least), measure.strength(most)
    result = [most, measure.least]
    for tick in measure.ticks:
        place = measure.strength(tick)
        distances = [abs(place - measure.strength(other)) / (end - start) for other in result]
        if measure.least < tick < most and min(distances) > _MIN_TICK_DISTANCE:
            result.append(tick)
    return sorted(result)


def _rows(cells: pa.Table) -> list[Row]:
    """What is in each row, from the top on."""
    rows = cells.select(["line", "partitions", "topic", "partition", "last_topic", "last_partition"]).to_pylist()
    return list({row["line"]: row for row in rows}.values())


def _shared(rows: list[Row]) -> list[Row]:
    """The rows that several partitions share."""
    return rows[queries.WORST_ROWS :] if sum(row["partitions"] for row in rows) > queries.MAX_ROWS else []


def _names(rows: list[Row], links: Sequence[str | None]) -> list[str]:
    """The number of a partition, or the first and last of several; with the topic where there is more than one."""
    one_topic = len({row[which] for row in rows for which in ("topic", "last_topic")}) == 1
    return [_name(row, link, one_topic=one_topic) for row, link in zip(rows, links, strict=True)]


def _name(row: Row, link: str | None, *, one_topic: bool) -> str:
    first = f"{row['partition']}" if one_topic else f"{_short(row['topic'])}-{row['partition']}"
    if link is not None:
        return f'<a href="{html.escape(link)}" target="_self" style="{_LINK_STYLE}">{first}</a>'
    return f"{first} to {row['last_partition']}" if one_topic else f"{first} …"


def _short(topic: str) -> str:
    """A topic's name, cut in the middle: names of topics mostly differ at their ends."""
    line = escaping.visible(topic)
    if len(line) > _MAX_NAME_LENGTH:
        half = _MAX_NAME_LENGTH // 2
        line = f"{line[:half]}…{line[-half:]}"
    return escaping.plotly(line)
