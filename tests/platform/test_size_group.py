"""`lagwise size GROUP`: what is known of the group need not be typed in, and what is typed in counts instead."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lagwise.cli import cli
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.planning import DEMAND, FORECASTS
from lagwise.tables.store import Lake
from tests.platform.judged import append, row


def known(name: str, **values: Any) -> dict[str, Any]:
    measured = datetime.now(UTC) - timedelta(minutes=3)
    inputs = [
        {"name": "t1_seconds", "value": 0.012, "source": "probe", "samples": 50_000, "measured_at": measured},
        {"name": "t2_seconds", "value": 0.003, "source": "probe", "samples": 50_000, "measured_at": measured},
        {"name": "cores", "value": 8.0, "source": "settings", "samples": None, "measured_at": None},
    ]
    return row(
        CAPACITY,
        **{
            "cluster": "shop",
            "group": name,
            "topic": "orders",
            "verdict": "tight",
            "sentence": "20,000 messages/s arrive at peak; it can do 24,000.",
            "partitions": 480,
            "members": 480,
            "nodes": 12,
            "hottest_share": 1 / 480,
            "lag": 0,
            "peak_rate_per_second": 18_000.0,
            "forecast_peak_rate_per_second": 20_000.0,
            "t1_seconds": 0.012,
            "t2_seconds": 0.003,
            "cores": 8.0,
            "max_threads_per_node": 1000,
            "concurrency": "consumer-per-thread",
            "confidence": "high",
            "inputs": inputs,
        }
        | values,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lake = Lake(str(tmp_path / "lake"))
    lake.create(CAPACITY, DEMAND, FORECASTS)
    unknown = {"t1_seconds": None, "t2_seconds": None, "cores": None, "concurrency": None, "inputs": []}
    by_members = {"t1_seconds": 0.004, "t2_seconds": 0.0, "cores": None, "max_threads_per_node": 1, "inputs": []}
    append(
        lake,
        CAPACITY,
        known("billing"),
        known("audit"),
        known("audit", topic="invoices"),
        known("mail", cluster="one"),
        known("mail", cluster="two"),
        known("new", sentence="It never had a backlog.", **unknown),
        known("members", **by_members),
    )
    return tmp_path


def run(data: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["size", *words, "--data", str(data)])


def document(data: Path, *words: str) -> dict[str, Any]:
    result = run(data, *words, "--json")
    assert result.exit_code == 0, result.output
    made: dict[str, Any] = json.loads(result.output)
    return made


def test_nothing_has_to_be_typed_in(data: Path) -> None:
    made = document(data, "billing")
    assert made["group"]["verdict"] == "tight"
    assert (made["triple"]["nodes"], made["triple"]["threads_per_node"]) == (13, 40)
    assert made["inputs"]["t1_seconds"]["value"] == 0.012
    assert made["inputs"]["t1_seconds"]["source"].startswith("probe, from 50,000 messages, 3 min")
    assert made["inputs"]["cores"] == {"value": 8.0, "source": "settings"}
    assert made["inputs"]["peak_rate_per_second"]["value"] == 20_000.0


def test_a_folder_without_a_lake_is_named(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere", "billing")
    assert result.exit_code != 0
    assert f"there is no lake with capacity in it at {tmp_path / 'nowhere'}" in str(result.exception) + result.output


def test_what_is_typed_in_counts(data: Path) -> None:
    made = document(data, "billing", "--peak", "2k", "--cores", "4")
    assert made["inputs"]["peak_rate_per_second"] == {"value": 2_000.0, "source": "option --peak"}
    assert made["inputs"]["cores"] == {"value": 4.0, "source": "option --cores"}
    assert made["triple"]["nodes"] < 13


def test_a_page_for_people(data: Path) -> None:
    said = run(data, "billing").output
    assert "billing on orders · tight" in said
    assert "20,000 messages/s arrive at peak; it can do 24,000." in said
    assert "probe, from 50,000 messages, 3 min" in said
    assert "What one node does" in said


def test_by_members_where_no_probe_measures(data: Path) -> None:
    made = document(data, "members")
    assert (made["triple"]["threads_per_node"], made["inputs"]["t2_seconds"]["value"]) == (1, 0.0)
    assert "saturation" in made["inputs"]["t1_seconds"]["source"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody",), "nothing is known of the capacity of group 'nobody' yet"),
        (("audit",), "group 'audit' reads invoices, orders: name one with --topic"),
        (("mail",), "there is a group 'mail' in one, two: name one with --cluster"),
        (("billing", "--topic", "x"), "nothing is known of the capacity of group 'billing' on topic 'x'"),
        (("new",), "not known of new: --t1, --t2, --cores. It never had a backlog."),
        ((), "missing --t1, --t2, --cores, --peak, --partitions"),
        (("--t1", "1ms"), "missing --t2, --cores, --peak, --partitions"),
    ],
    ids=["no such group", "two topics", "two clusters", "no such topic", "not enough", "nothing", "too little"],
)
def test_refusals(data: Path, words: tuple[str, ...], says: str) -> None:
    result = run(data, *words)
    assert result.exit_code in (1, 2)
    assert says in " ".join(result.output.split())


def test_one_of_several(data: Path) -> None:
    assert document(data, "audit", "--topic", "invoices")["group"]["topic"] == "invoices"
    assert document(data, "mail", "--cluster", "two")["group"]["cluster"] == "two"
    assert document(data, "new", "--t1", "1ms", "--t2", "1ms", "--cores", "2")["feasible"]


def forecast(data: Path, mean_of_day: Callable[[int], float], days: int = 90) -> None:
    """Of `orders`; the peak at the horizon is its last day's."""
    lake, now = Lake(str(data / "lake")), datetime.now(UTC)
    about = {"cluster": "shop", "topic": "orders"}
    peak = {"peak_per_second": 18_000.0, "forecast_peak_per_second": mean_of_day(days)}
    append(lake, DEMAND, row(DEMAND, **about, as_of=now, peak_at=now, horizon_days=days, **peak))
    hours = [
        row(
            FORECASTS, **about, made_at=now, at=now + timedelta(days=day),
            busiest_per_second=mean_of_day(day), busiest_high_per_second=1.1 * mean_of_day(day),
        )
        for day in range(1, days + 1)
    ]  # fmt: skip
    append(lake, FORECASTS, *hours)


@pytest.fixture
def growing(data: Path) -> Path:
    """18,000/s at first and 100 more each day; what runs can do 30,000/s, 21,000 with slack: until day 30."""
    forecast(data, lambda day: 18_000.0 + 100.0 * day)
    can_do = {"capacity_low_per_second": 30_000.0, "capacity_high_per_second": 31_000.0, "threads_per_node": 40}
    append(Lake(str(data / "lake")), CAPACITY, known("grows", **can_do))
    return data


@pytest.mark.parametrize(
    ("horizon", "peak", "verdict"), [("7d", 18_700.0, "enough"), ("90d", 27_000.0, "tight")], ids=["week", "quarter"]
)
def test_up_to_a_horizon(growing: Path, horizon: str, peak: float, verdict: str) -> None:
    made = document(growing, "grows", "--horizon", horizon)
    asked = made["inputs"]["peak_rate_per_second"]
    assert asked["value"] == pytest.approx(peak)
    assert asked["source"].startswith("forecast, for ")
    assert made["group"]["verdict"] == verdict


def test_what_was_seen_counts_where_no_more_is_forecast(data: Path) -> None:
    forecast(data, lambda day: 10_000.0)
    asked = document(data, "billing", "--horizon", "30d")["inputs"]["peak_rate_per_second"]
    assert asked["value"] == 18_000.0
    assert asked["source"].startswith("history")


def test_the_target_is_that_of_the_settings(data: Path) -> None:
    (data / "lagwise.yaml").write_text("analysis: {capacity: {target_utilisation: 0.5}}")
    words = ["--config", str(data / "lagwise.yaml"), "size", "billing", "--data", str(data), "--json"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["inputs"]["target_utilisation"] == {"value": 0.5, "source": "settings"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("grows", "--horizon", "365d"), "reaches 90 d ahead"),
        (("grows", "--horizon", "1m"), "nothing is forecast before"),
        (("members", "--topic", "elsewhere", "--horizon", "7d"), "there is no forecast of elsewhere yet"),
        (("--t1", "1ms", "--horizon", "7d"), "name one, or type in --peak"),
    ],
    ids=["too far", "too near", "no forecast", "no group"],
)
def test_a_horizon_that_says_nothing(growing: Path, words: tuple[str, ...], says: str) -> None:
    append(Lake(str(growing / "lake")), CAPACITY, known("members", topic="elsewhere"))
    result = run(growing, *words)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
