"""A group's partitions as a heat map: a row for each, a stronger colour for more lag, so that outliers stand out.

It is the lowest of the group's charts, on their time axis.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from lagwise.domain import humanise
from lagwise_dashboard import context, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import heat_map as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.widgets.time_range import TimeRange

TITLE = "Lag by partition, records"
#: Pixels: the height of a row, the least height of all rows, and the height and width of the scale above them.
_ROW_HEIGHT, _MIN_HEIGHT, _SCALE_HEIGHT, _SCALE_WIDTH = 14, 300, 8, 260
_MAX_NAME_LENGTH = 20
#: The scale is one hue over the page's own background, from invisible to opaque: no lag is the background itself and
#: much lag stands out, in light, in dark and on paper. The hue has a contrast of more than 4 with both backgrounds.
_COLOURS = ((0.0, "rgba(12,135,124,0)"), (1.0, "rgba(12,135,124,1)"))
_UNKNOWN = "rgba(128,128,128,0.28)"
#: The scale reaches at least to this lag, so that a handful of records is never drawn at full strength.
_MIN_SCALE_LAG = 100
_TICKS = tuple(10.0**n for n in range(12, 0, -1))
#: Numbers on the scale that are nearer to each other than this share of it would overlap.
_MIN_TICK_DISTANCE = 0.13
#: Spans end on a whole step of this, so that browsers share one answer: a heat map does not change by the second.
_STEP_SECONDS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find(cluster: str, group: str, partitions: int, span: TimeRange) -> pa.Table | None:
    """The cells of a group of many partitions; None for others, and where nothing is known of the span."""
    if partitions < queries.MIN_PARTITIONS:
        return None
    until = span.until if span.is_zoom else context.rounded_up(span.until, _STEP_SECONDS)
    result = ask(queries.lags, cluster, group, until - (span.until - span.since), until)
    return result if result.num_rows else None


def height(result: pa.Table) -> int:
    """Pixels that the rows take."""
    return max(_MIN_HEIGHT, _ROW_HEIGHT * len(_rows(result)))


def caption(result: pa.Table) -> str:
    """What the heat map shows, in sentences."""
    text = "In the heat map, a stronger colour means more unread records, and grey means unknown."
    rows = _rows(result)
    shared = [row["partitions"] for row in _shared(rows)]
    if not shared:
        return text
    return (
        f"{text} Of {sum(row['partitions'] for row in rows):,} partitions, the {queries.WORST_ROWS} with the largest "
        f"lag in this span have a row each, worst first. The other {sum(shared):,} share the {len(shared)} rows below, "
        f"up to {max(shared):,} in a row, ordered by topic and number; such a row shows the largest lag among them."
    )


def add(made: go.Figure, result: pa.Table, *, row: int) -> None:
    """Draw the cells into this row of a stack of charts, and their scale above it."""
    line, bucket = result["line"].to_numpy(), result["bucket"].to_numpy()
    rows, first, width = _rows(result), int(bucket.min()), result["width_seconds"][0].as_py()
    # As arrays of numbers: lists would be looked through number by number, and sent as text.
    lags = np.full((len(rows), bucket.max() - first + 1), np.nan, np.float32)
    lags[line, bucket - first] = result["lag"].to_numpy(zero_copy_only=False)
    middles = [_EPOCH + timedelta(seconds=(first + i + 0.5) * width) for i in range(lags.shape[1])]
    most = max(_MIN_SCALE_LAG, 0.0 if np.isnan(lags).all() else float(np.nanmax(lags)))
    axis = made.layout[f"yaxis{row}"]
    ticks = _ticks(most)
    made.add_trace(
        go.Heatmap(
            x=middles, z=np.where(np.isnan(lags), 1.0, np.nan), colorscale=((0, _UNKNOWN), (1, _UNKNOWN)),
            showscale=False, hoverongaps=False, ygap=1, hovertemplate="%{y}: unknown<extra></extra>",
        ),
        row=row, col=1,
    )  # fmt: skip
    made.add_trace(
        go.Heatmap(
            x=middles, z=_strength(lags), zmin=0, zmax=_strength(most), colorscale=_COLOURS, customdata=lags,
            hoverongaps=False, ygap=1, hovertemplate="%{y}: %{customdata:,} records<extra></extra>",
            colorbar={
                "orientation": "h", "x": 1, "xanchor": "right", "y": axis.domain[1], "yanchor": "bottom", "ypad": 2,
                "xpad": 16, "thickness": _SCALE_HEIGHT, "lenmode": "pixels", "len": _SCALE_WIDTH, "outlinewidth": 1,
                "tickvals": [_strength(n) for n in ticks], "ticktext": [humanise.count(n) for n in ticks],
                "ticklabelposition": "outside top",
            },
        ),
        row=row, col=1,
    )  # fmt: skip
    made.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=_names(rows), range=[len(rows) - 0.5, -0.5], rangemode="normal",
        showgrid=False, row=row, col=1,
    )  # fmt: skip
    made.update_xaxes(showgrid=False, row=row, col=1)


def _strength(lag: Any) -> Any:
    """The cube root of lag: a tenth of the largest is drawn at half its strength, a thousandth at a tenth. On a
    logarithmic scale a harmless lag of ten would be as strong as a quarter of one of ten thousand."""
    return np.cbrt(np.maximum(lag, 0))


def _ticks(most: float) -> list[float]:
    """Numbers for the scale: the largest lag, zero, and the powers of ten between them for which there is room."""
    result = [most, 0.0]
    for tick in _TICKS:
        place = _strength(tick / most)
        if tick < most and all(abs(place - _strength(other / most)) > _MIN_TICK_DISTANCE for other in result):
            result.append(tick)
    return sorted(result)


def _rows(result: pa.Table) -> list[Row]:
    """What is in each row, from the top on."""
    cells = result.select(["line", "partitions", "topic", "partition", "last_topic", "last_partition"]).to_pylist()
    return list({row["line"]: row for row in cells}.values())


def _shared(rows: list[Row]) -> list[Row]:
    """The rows that several partitions share."""
    return rows[queries.WORST_ROWS :] if sum(row["partitions"] for row in rows) > queries.MAX_ROWS else []


def _names(rows: list[Row]) -> list[str]:
    """The number of a partition, or the first and last of several; with the topic where there is more than one."""
    one_topic = len({row[which] for row in rows for which in ("topic", "last_topic")}) == 1
    return [_name(row, one_topic=one_topic) for row in rows]


def _name(row: Row, *, one_topic: bool) -> str:
    first = f"{row['partition']}" if one_topic else f"{_short(row['topic'])}-{row['partition']}"
    if row["partitions"] == 1:
        return first
    return f"{first} to {row['last_partition']}" if one_topic else f"{first} …"


def _short(topic: str) -> str:
    """A topic's name, cut in the middle: names of topics mostly differ at their ends."""
    line = escaping.visible(topic)
    if len(line) > _MAX_NAME_LENGTH:
        half = _MAX_NAME_LENGTH // 2
        line = f"{line[:half]}…{line[-half:]}"
    return escaping.plotly(line)
