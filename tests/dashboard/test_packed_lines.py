"""Long lines take fewer bytes, and say the same."""

import base64
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pytest

from lagwise_dashboard import plot_theme
from lagwise_dashboard.widgets import packed

NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
_BUCKET = timedelta(seconds=216)


def _line(at: list[datetime], y: list[Any]) -> dict[str, Any]:
    return {"mode": "lines", "x": [one.isoformat() for one in at], "y": y}


def _unpacked(array: dict[str, str]) -> list[float | None]:
    values = np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"])
    return [None if math.isnan(value) else float(value) for value in values]


def test_a_packed_line_has_the_same_points() -> None:
    at = [NOW + n * _BUCKET for n in range(400)]
    rates = [None if n % 50 == 7 else 1000 / (n + 1) for n in range(400)]
    line = _line(at, rates)
    packed.pack(line)
    assert line["x0"] == NOW.timestamp() * 1000
    assert line["dx"] == _BUCKET.total_seconds() * 1000
    assert "x" not in line
    assert [v is None for v in _unpacked(line["y"])] == [v is None for v in rates]
    assert _unpacked(line["y"])[0:7] == pytest.approx(rates[0:7], rel=1e-6)
    assert len(str(line)) < 0.12 * len(str(_line(at, rates)))


def test_times_that_are_not_equally_far_apart_keep_their_places() -> None:
    at = [NOW + n * _BUCKET + timedelta(seconds=n % 3) for n in range(100)]
    line = _line(at, [1.0] * 100)
    packed.pack(line)
    assert _unpacked(line["x"]) == [1000 * one.timestamp() for one in at]


def test_the_clocks_of_another_zone_stay_those_that_are_drawn() -> None:
    at = [datetime(2026, 11, 21, 17, 30) + n * _BUCKET for n in range(100)]  # noqa: DTZ001 (as plot_theme.in_zone has them)
    line = _line(at, [1.0] * 100)
    packed.pack(line)
    assert line["x0"] == 1000 * datetime(2026, 11, 21, 17, 30, tzinfo=UTC).timestamp()


def test_large_counts_stay_exact() -> None:
    counts = [2**33 + n for n in range(100)]
    line = _line([NOW + n * _BUCKET for n in range(100)], counts)
    packed.pack(line)
    assert _unpacked(line["y"]) == counts


@pytest.mark.parametrize(
    "other",
    [
        {"mode": "markers", "x": [NOW.isoformat()] * 100, "y": [0] * 100},
        {"mode": "lines", "x": list(range(100)), "y": [0] * 100},
        {"mode": "lines", "x": [NOW.isoformat()] * 4, "y": [0, 0, 1, 1]},
    ],
)
def test_nothing_else_is_packed(other: dict[str, Any]) -> None:
    before = dict(other)
    packed.pack(other)
    assert other == before


def _history(at: list[datetime]) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "lag": list(range(len(at)))})


def _bucket(at: datetime) -> int:
    return math.floor(at.timestamp() / _BUCKET.total_seconds())


def test_points_of_buckets_are_equally_far_apart_and_each_stays_in_its_bucket() -> None:
    start = datetime.fromtimestamp(_bucket(NOW) * _BUCKET.total_seconds(), UTC)
    last_ticks = [timedelta(seconds=200 + n % 16) for n in range(100)]
    at = [start + n * _BUCKET + last_tick for n, last_tick in enumerate(last_ticks)]
    at[-1] = start + 99 * _BUCKET + timedelta(seconds=20)  # the newest bucket has only begun
    points = plot_theme.with_gaps(_history(at), _BUCKET.total_seconds())
    assert points["at"][-1] == at[-1]
    assert {later - earlier for earlier, later in zip(points["at"], points["at"][1:], strict=False)} == {_BUCKET}
    assert [*map(_bucket, points["at"])] == [*map(_bucket, at)]
    assert points["lag"] == list(range(100))


def test_a_gap_stays_one() -> None:
    start = datetime.fromtimestamp(_bucket(NOW) * _BUCKET.total_seconds(), UTC)
    at = [start + n * _BUCKET for n in range(100) if not 40 <= n < 60]
    points = plot_theme.with_gaps(_history(at), _BUCKET.total_seconds())
    assert points["lag"] == [*range(40), *([None] * 20), *range(40, 80)]


def test_points_that_are_rarer_than_buckets_stay_where_they_are() -> None:
    at = [NOW + n * timedelta(seconds=300 + n % 7) for n in range(100)]
    points = plot_theme.with_gaps(_history(at), _BUCKET.total_seconds())
    assert points == {"at": at, "lag": list(range(100))}


def test_plotly_itself_packs_numbers_the_same_way() -> None:
    thirds = [n / 3 for n in range(100)]
    line = _line([NOW + n * _BUCKET for n in range(100)], thirds)
    packed.pack(line)
    assert go.Figure(go.Scatter(y=np.array(thirds, np.float32))).to_dict()["data"][0]["y"] == line["y"]
