"""`lagwise size GROUP`: what is known of the group need not be typed in, and what is typed in counts instead."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lagwise.cli import cli
from lagwise.tables.capacity import CAPACITY
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
    lake.create(CAPACITY)
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
    assert made["inputs"]["t1_seconds"] == {"value": 0.012, "source": "probe, from 50.0 k, 3 min ago"}
    assert made["inputs"]["cores"] == {"value": 8.0, "source": "settings"}
    assert made["inputs"]["peak_rate_per_second"]["value"] == 20_000.0


def test_what_is_typed_in_counts(data: Path) -> None:
    made = document(data, "billing", "--peak", "2k", "--cores", "4")
    assert made["inputs"]["peak_rate_per_second"] == {"value": 2_000.0, "source": "option --peak"}
    assert made["inputs"]["cores"] == {"value": 4.0, "source": "option --cores"}
    assert made["triple"]["nodes"] < 13


def test_a_page_for_people(data: Path) -> None:
    said = run(data, "billing").output
    assert "billing on orders · tight" in said
    assert "20,000 messages/s arrive at peak; it can do 24,000." in said
    assert "probe, from 50.0 k, 3 min ago" in said
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
