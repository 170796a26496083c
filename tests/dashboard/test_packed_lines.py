"""Long lines take fewer bytes, and say the same."""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import plotly.io
import pyarrow as pa
import pytest

from lagwise.platform.time_zones import time_zone
from lagwise_dashboard import plot_theme
from lagwise_dashboard.time_zone import IN_UTC, ShownZone
from tests.dashboard.sent_lines import unpacked

NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
_BUCKET = timedelta(seconds=216)
_EVENLY = [NOW + n * _BUCKET for n in range(400)]


def _sent(at: Sequence[datetime], y: Sequence[float | None], zone: ShownZone = IN_UTC) -> tuple[dict[str, Any], int]:
    """A line as it is sent, and the bytes that it takes."""
    made = plot_theme.figure(height=200, zoom="zoom")
    made.add_trace(plot_theme.packed_line(at, y))
    made.update_xaxes(range=[at[0], at[-1]])
    plain = made.to_plotly_json()
    plot_theme.in_zone(plain, zone, NOW)
    trace = json.loads(plotly.io.to_json(plain, validate=False))["data"][0]
    return trace, len(json.dumps(trace))


def test_a_packed_line_has_the_same_points() -> None:
    rates = [None if n % 50 == 7 else 1000 / (n + 1) for n in range(400)]
    line, size = _sent(_EVENLY, rates)
    assert (line["x0"], line["dx"]) == ("2026-11-21T12:00:05+00:00", 216_000.0)
    assert "x" not in line
    assert [v is None for v in unpacked(line["y"])] == [v is None for v in rates]
    assert unpacked(line["y"])[:7] == pytest.approx(rates[:7], rel=1e-6)
    assert size < 0.12 * len(json.dumps([[at.isoformat(), rate] for at, rate in zip(_EVENLY, rates, strict=True)]))


def test_times_that_are_not_equally_far_apart_keep_their_places() -> None:
    at = [NOW + n * _BUCKET + timedelta(seconds=n % 3) for n in range(100)]
    line, _ = _sent(at, [1.0] * 100)
    assert line["x"] == [one.isoformat() for one in at]


def test_a_packed_line_is_drawn_by_the_clocks_of_its_reader() -> None:
    line, _ = _sent(_EVENLY, [1.0] * 400, ShownZone("Asia/Kolkata", time_zone("Asia/Kolkata")))
    assert (line["x0"], line["dx"]) == ("2026-11-21T17:30:05", 216_000.0)


def test_large_counts_stay_exact() -> None:
    counts = [2**33 + n for n in range(400)]
    assert unpacked(_sent(_EVENLY, counts)[0]["y"]) == counts


def test_a_short_line_stays_readable() -> None:
    line, _ = _sent(_EVENLY[:3], [1, None, 3])
    assert line["y"] == [1, None, 3]
    assert len(line["x"]) == 3


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


@pytest.mark.parametrize("missing", [range(40, 60), range(40, 42)])
def test_a_gap_stays_one(missing: range) -> None:
    start = datetime.fromtimestamp(_bucket(NOW) * _BUCKET.total_seconds(), UTC)
    at = [start + (n + 0.95) * _BUCKET for n in range(100) if n not in missing]
    points = plot_theme.with_gaps(_history(at), _BUCKET.total_seconds())
    assert points["lag"] == [*range(40), *([None] * len(missing)), *range(40, 100 - len(missing))]


def test_points_that_are_as_rare_as_buckets_stay_where_they_are() -> None:
    at = [NOW + n * timedelta(seconds=190 + n % 7) for n in range(100)]
    points = plot_theme.with_gaps(_history(at), _BUCKET.total_seconds())
    assert points == {"at": at, "lag": list(range(100))}
