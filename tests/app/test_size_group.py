"""`lagwise size GROUP`: what is known of the group need not be typed in, and what is typed in counts instead."""

import csv
import html
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS, OBSERVED_CAPACITY
from lagwise.tables.store import Lake
from lagwise_app.cli import cli
from tests.app.judged import append, row
from tests.spark.capacity_rows import burst

pytestmark = pytest.mark.thorough


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
            "unit": "node",
            "capacity_source": "probe",
            "size_by": "peak",
            "concurrency": "consumer-per-thread",
            "confidence": "high",
            "inputs": inputs,
        }
        | values,
    )


FULL = "Downstream is full at about 117/s: more threads, nodes or partitions would not help."
EVIDENCE = "5 threads did 117/s with a T1 of 49 ms; 40 threads did 123/s with a T1 of 322 ms."


def full_inputs() -> list[dict[str, Any]]:
    """As the analysis writes them where T1 rose with the threads and throughput did not."""
    measured = datetime.now(UTC) - timedelta(minutes=3)
    rate = {"name": "downstream_rate_per_second", "value": 117.0, "source": EVIDENCE, "samples": 20_000}
    members = {"name": "downstream_members", "value": 1.0, "source": "probe", "samples": None}
    return [*known("x")["inputs"], *({**one, "measured_at": measured} for one in (rate, members))]


#: Of a Flink job.
HAS_SLOTS = {"slots_held": 100, "slots_free": 8}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lake = Lake(str(tmp_path / "lake"))
    lake.create(CAPACITY, DEMAND, FORECASTS)
    unknown = {
        "t1_seconds": None, "t2_seconds": None, "cores": None, "concurrency": None, "inputs": [],
        "verdict": "undecided", "confidence": "none", "max_threads_per_node": None, "unit": "member",
    }  # fmt: skip
    by_members = {
        "t1_seconds": 0.004, "t2_seconds": None, "cores": None, "max_threads_per_node": 1, "inputs": [],
        "unit": "member", "capacity_source": "saturation",
    }  # fmt: skip
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
        known("job", **by_members | {"unit": "subtask", "capacity_source": "busy_time"} | HAS_SLOTS),
        known("full", sentence=f"Too little. {FULL}", inputs=full_inputs(), binds="downstream"),
        known("idle-job", **unknown | {"unit": "subtask"}),
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


def test_behind_a_full_downstream_nothing_more_is_advised(data: Path, tmp_path: Path) -> None:
    page, figures = tmp_path / "full.html", tmp_path / "full.csv"
    said = " ".join(run(data, "full", "--html", str(page), "--csv", str(figures)).output.replace("│", " ").split())
    made = document(data, "full", "--partitions", "48", "--peak", "150")
    assert f"{FULL} {EVIDENCE}" in said
    assert "No answer on 480 partitions · limited by: downstream" in said
    assert "How to get there" not in said and "Cheapest change" not in said
    assert (made["feasible"], made["triple"], made["binds"], made["changes"]) == (False, None, "downstream", [])
    assert made["verdict"].startswith(f"{FULL} {EVIDENCE} 221/s are needed: find out what limits the downstream")
    assert made["downstream_full"]["rate_per_second"] == 117.0
    assert made["downstream_full"]["measured_at"]
    text = html.unescape(page.read_text())
    assert f"{FULL} {EVIDENCE}" in text and "Downstream is full at</td>" in text
    assert "<pre>" not in text
    assert FULL in figures.read_text()

    # Who types in T1 asks about another downstream.
    made = document(data, "full", "--t1", "12ms")
    assert (made["feasible"], made["downstream_full"]) == (True, None)


def test_a_folder_without_a_lake_is_named(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere", "billing")
    assert result.exit_code != 0
    assert f"no capacity in the lake at {tmp_path / 'nowhere'}" in str(result.exception) + result.output


def test_what_is_typed_in_counts(data: Path) -> None:
    made = document(data, "billing", "--peak", "2k", "--cores", "4")
    assert made["inputs"]["peak_rate_per_second"] == {"value": 2_000.0, "source": "option --peak"}
    assert made["inputs"]["cores"] == {"value": 4.0, "source": "option --cores"}
    assert made["triple"]["nodes"] < 13


def test_a_page_for_people(data: Path) -> None:
    said = run(data, "billing").output
    assert "billing on orders (shop) · tight" in said
    assert "20,000 messages/s arrive at peak; it can do 24,000." in said
    assert "probe, from 50,000 messages, 3 min" in said
    assert "What one node does" in said


def test_by_members_where_no_probe_measures(data: Path) -> None:
    made = document(data, "members")
    assert made["inputs"]["seconds_per_message"]["value"] == 0.004
    assert "saturation" in made["inputs"]["seconds_per_message"]["source"]
    assert [made["inputs"][name]["value"] for name in ("t1_seconds", "t2_seconds", "cores")] == [None] * 3
    assert made["node"] == made["ramp"] == []
    said = " ".join(run(data, "members").output.split())
    assert "members, and 1 spare member, carry this load on 480 partitions" in said
    assert "--per-message 4 ms as seen under saturation" in said
    for untrue in ("nodes", "What one node does", "cores busy", "--t1", "--cores", "knee"):
        assert untrue not in said
    # Who types in one of the three means nodes and threads.
    assert document(data, "members", "--t1", "3ms")["missing"] == ["t2_seconds", "cores"]
    assert document(data, "members", "--t1", "3ms", "--t2", "1ms", "--cores", "4")["triple"]["threads_per_node"] > 1
    assert document(data, "billing", "--per-message", "4ms")["inputs"]["t1_seconds"]["value"] is None


def test_of_a_flink_job_subtasks_are_sized(data: Path) -> None:
    inputs = document(data, "job")["inputs"]
    assert "busy time" in inputs["seconds_per_message"]["source"]
    assert inputs["unit"] == {"value": "subtask", "source": "what reads for the group"}
    said = " ".join(run(data, "job").output.split())
    assert "subtasks carry this load on 480 partitions" in said
    assert "spare" not in said
    assert not re.search(r"\bmembers?\b", said.replace("--unit member", ""))
    assert document(data, "idle-job", "--per-message", "4ms")["inputs"]["unit"]["value"] == "subtask"
    typed = ("--per-message", "4ms", "--peak", "2k", "--partitions", "48")
    reported = document(data, *typed, "--unit", "subtask")["verdict"]
    assert "the number of subtasks that fit on a TaskManager" in reported
    assert "subtask" not in document(data, *typed)["verdict"]


def test_a_flink_job_shows_whether_there_are_task_slots(data: Path, tmp_path: Path) -> None:
    made = document(data, "job")
    assert made["triple"]["nodes"] > 108
    missing = made["triple"]["nodes"] - 108
    reported = f"{missing} more task slots are needed (the job holds 100, and 8 are free)"
    assert reported in made["slots"]["sentence"]
    assert {**made["slots"], "sentence": ""} == {"held": 100, "free": 8, "missing": missing, "sentence": ""}
    page, figures = tmp_path / "meeting.html", tmp_path / "meeting.csv"
    said = run(data, "job", "--html", str(page), "--csv", str(figures)).output
    assert reported in re.sub(r"[\s│]+", " ", said)
    assert reported in html.unescape(page.read_text())
    assert "Spare nodes" not in page.read_text()
    lines = {line["name"]: line for line in csv.DictReader(io.StringIO(figures.read_text()))}
    assert (lines["missing"]["section"], lines["missing"]["value"]) == ("task slots", str(missing))
    # What is typed in counts here, too.
    assert document(data, "job", "--peak", "10k")["slots"]["missing"] == 0
    nodes = ("--t1", "3ms", "--t2", "1ms", "--cores", "4")
    assert [document(data, *words)["slots"] for words in (("job", *nodes), ("members",), ("idle-job",))] == [None] * 3


@pytest.mark.parametrize("words", [("job",), ("idle-job",), ("members", "--unit", "subtask")])
def test_a_group_that_is_a_flink_job_has_no_spare_subtasks(data: Path, words: tuple[str, ...]) -> None:
    result = run(data, *words, "--spare-nodes", "2")
    assert result.exit_code == 2
    assert "a Flink job has no spare subtasks: leave --spare-nodes out" in " ".join(result.output.split())
    # Who types in T1, T2 and the cores means nodes.
    typed = ("job", "--t1", "3ms", "--t2", "1ms", "--cores", "4", "--spare-nodes", "2")
    assert document(data, *typed)["triple"]["spare_nodes"] == 2


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--per-message", "0"), "--per-message: must be above 0"),
        (("--per-message", "40000d"), "--per-message: must be above 0, and a day at most"),
        (("--per-message", "4ms", "--unit", "subtask", "--spare-nodes", "1"), "no spare subtasks"),
        (("--t1", "4ms", "--t2", "1ms", "--cores", "4", "--unit", "subtask"), "--unit goes with --per-message"),
    ],
)
def test_conflicting_options_are_named_as_they_were_typed(data: Path, words: tuple[str, ...], reported: str) -> None:
    result = run(data, *words, "--peak", "2k", "--partitions", "48")
    assert result.exit_code == 2
    assert reported in " ".join(result.output.replace("'", "").split())


@pytest.mark.parametrize("words", [("new",), ("new", "--t1", "12ms")], ids=["nothing", "only T1"])
def test_undecided_is_an_answer_and_no_number_is_made_up(data: Path, words: tuple[str, ...]) -> None:
    """The commonest first contact: what is known, what is missing, the load test; exit 0."""
    about = {"cluster": "shop", "group": "new", "topic": "orders"}
    Lake(str(data / "lake")).create(OBSERVED_CAPACITY)
    append(Lake(str(data / "lake")), OBSERVED_CAPACITY, row(OBSERVED_CAPACITY, **about, reason="never_saturated"))
    result = run(data, *words)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "new on orders (shop) · undecided" in said and "It never had a backlog." in said
    assert "No advice:" in said and "the cores of a node are not known" in said
    assert not re.search(r"\d+ (nodes?|threads?|members?)\b", said)
    made = document(data, *words)
    assert (made["feasible"], made["triple"], made["figures"]) == (None, None, {})
    assert made["missing"] == ["t1_seconds", "t2_seconds", "cores"][len(words) - 1 and 1 :]
    assert made["load_test"].startswith("Let records arrive faster than it reads them")
    assert made["inputs"]["cores"] == {"value": None, "source": "not known"}
    assert made["inputs"]["peak_rate_per_second"]["value"] == 20_000.0
    assert "No forecast" in made["forecast"]["sentence"]


def test_the_lag_of_now_is_no_part_of_the_plan(data: Path) -> None:
    append(Lake(str(data / "lake")), CAPACITY, known("behind", lag=500_000_000))
    assert document(data, "behind")["triple"] == document(data, "billing")["triple"]
    assert not document(data, "behind", "--lag", "500M")["feasible"]


def test_forecast_what_if_and_ramp_are_those_of_the_page(growing: Path) -> None:
    said = run(growing, "grows", "--concurrency", "pool").output
    made = document(growing, "grows", "--concurrency", "pool")
    assert len(made["forecast"]["days"]) == 90
    assert made["forecast"]["days"][-1]["peak"] == pytest.approx(27_000.0)
    assert "What will arrive" in said and "27,000/s" in said
    assert made["what_if"]["question"] == "Nothing is read for 1 h."
    running, advised = made["what_if"]["outcomes"]
    assert running["set_up"] == "Running: 12 nodes of 40 threads" and running["peak_lag"] >= 3_600 * 20_000 * 0.999
    assert running["set_up"] in said and advised["set_up"] in said
    assert made["ramp"][0]["threads"] == 40
    assert "How to get there" in said and made["ramp"][1]["stop"].split(".")[0][:40] in " ".join(said.split())


def test_files_to_take_away(growing: Path, tmp_path: Path) -> None:
    page, figures = tmp_path / "meeting.html", tmp_path / "meeting.csv"
    result = run(growing, "grows", "--html", str(page), "--csv", str(figures), "--json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    text = page.read_text()
    assert made["verdict"] in html.unescape(text) and "default-src 'none'" in text
    assert text.count('<div class="chart"><svg') == 3
    lines = list(csv.DictReader(io.StringIO(figures.read_text())))
    assert {line["note"] for line in lines if line["name"] == "cores" and line["section"] == "asked"} == {"settings"}
    assert sum(line["section"] == "forecast" for line in lines) == 90
    run(growing, "new", "--html", str(page), "--csv", str(figures))
    assert "No advice: T1, T2 and the cores of a node are not known" in page.read_text()
    assert not [
        line
        for line in csv.DictReader(io.StringIO(figures.read_text()))
        if line["section"] in ("asked", "figure", "what if")
    ]


def test_the_report_needs_no_streamlit(growing: Path, tmp_path: Path) -> None:
    words = ["size", "grows", "--html", str(tmp_path / "a.html"), "--data", str(growing)]
    code = f"import sys; from lagwise_app.cli import cli; cli({words!r}, standalone_mode=False); "
    code += "assert 'plotly' in sys.modules and 'streamlit' not in sys.modules, 'imported'"
    found = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=found)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody",), "the capacity of group 'nobody' is not known yet"),
        (("audit",), "group 'audit' reads invoices, orders: choose one with --topic"),
        (("mail",), "group 'mail' is in several clusters (one, two): choose one with --cluster"),
        (("billing", "--topic", "x"), "the capacity of group 'billing' on topic 'x' is not known yet"),
        ((), "missing --t1, --t2, --cores, --peak, --partitions"),
        (("--t1", "1ms"), "missing --t2, --cores, --peak, --partitions"),
    ],
    ids=["no such group", "two topics", "two clusters", "no such topic", "nothing", "too little"],
)
def test_refusals(data: Path, words: tuple[str, ...], says: str) -> None:
    result = run(data, *words)
    assert result.exit_code in (1, 2)
    assert says in " ".join(result.output.split())


def test_one_of_several(data: Path) -> None:
    assert document(data, "audit", "--topic", "invoices")["group"]["topic"] == "invoices"
    assert document(data, "mail", "--cluster", "two")["group"]["cluster"] == "two"
    assert document(data, "new", "--t1", "1ms", "--t2", "1ms", "--cores", "2")["feasible"]


def forecast(
    data: Path, mean_of_day: Callable[[int], float], days: int = 90, *, cluster: str = "shop", **of_demand: Any
) -> None:
    """Of `orders`; the peak at the horizon is its last day's."""
    lake, now = Lake(str(data / "lake")), datetime.now(UTC)
    about = {"cluster": cluster, "topic": "orders"}
    peak = {"peak_per_second": 18_000.0, "forecast_peak_per_second": mean_of_day(days), "busy_hour_per_second": 1_000.0}
    append(lake, DEMAND, row(DEMAND, **about, as_of=now, peak_at=now, horizon_days=days, **peak | of_demand))
    hours = [
        row(
            FORECASTS, **about, made_at=now, at=now + timedelta(days=day),
            busiest_per_second=mean_of_day(day), busiest_high_per_second=1.1 * mean_of_day(day),
            peak_per_second=mean_of_day(day), peak_low_per_second=0.9 * mean_of_day(day),
            peak_high_per_second=1.1 * mean_of_day(day),
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
        (("grows", "--horizon", "1m"), "the forecast begins at"),
        (("members", "--topic", "elsewhere", "--horizon", "7d"), "there is no forecast of elsewhere yet"),
        (("--t1", "1ms", "--horizon", "7d"), "name one, or give --peak"),
    ],
    ids=["too far", "too near", "no forecast", "no group"],
)
def test_an_unusable_horizon_is_rejected(growing: Path, words: tuple[str, ...], says: str) -> None:
    append(Lake(str(growing / "lake")), CAPACITY, known("members", topic="elsewhere"))
    result = run(growing, *words)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())


@pytest.fixture
def recorded(data: Path) -> Path:
    """Bursts of two minutes with 18,000/s; the busy hours of the next 90 days get half as busy again, 60 % at worst."""
    forecast(data, lambda day: 1_000.0 + 500.0 * day / 90, objective_rates=burst(18_000.0), minutes=30_000)
    takes = {
        "objective_seconds": 300.0, "objective_rate_per_second": 18_000 * 120 / 420,
        "planned_objective_rate_per_second": 1.65 * 18_000 * 120 / 420, "size_by": "objective",
        "capacity_low_per_second": 15_000.0, "capacity_high_per_second": 15_500.0, "threads_per_node": 40,
    }  # fmt: skip
    inputs = known("x")["inputs"]
    evidence = {"name": "planned_objective_per_second", "value": 1.65 * 18_000 * 120 / 420, "source": "the busiest"}
    takes["inputs"] = [*inputs, evidence | {"samples": 30_000, "measured_at": None}]
    append(Lake(str(data / "lake")), CAPACITY, known("bursts", **takes))
    return data


def test_a_group_is_sized_by_its_objective(recorded: Path) -> None:
    made = document(recorded, "bursts")
    assert made["inputs"]["objective_rate_per_second"] == {
        "value": 8_486.0, "source": "the busiest, from 30,000 minutes",
    }  # fmt: skip
    assert made["inputs"]["objective_seconds"] == {"value": 300.0, "source": "settings"}
    assert made["figures"]["demand_rate_per_second"]["how"].startswith("objective's rate · (1 + restart / catch-up)")
    assert "At the objective's rate throughout." in run(recorded, "bursts").output


@pytest.mark.parametrize(
    ("words", "rate", "verdict"),
    [
        (("--objective", "30m"), 1.65 * 18_000 * 120 / 1_920, "oversized"),
        (("--objective", "0s"), 18_000.0, "short"),
        (("--horizon", "45d"), 1.375 * 18_000 * 120 / 420, "enough"),
        (("--objective", "10m", "--horizon", "9d"), 1.155 * 18_000 * 120 / 720, "enough"),
    ],
    ids=["longer", "none", "nearer", "both"],
)
def test_another_objective_or_horizon(recorded: Path, words: tuple[str, ...], rate: float, verdict: str) -> None:
    made = document(recorded, "bursts", *words)
    asked = made["inputs"]["objective_rate_per_second"]
    assert asked["value"] == round(rate)
    assert "the busiest 2 minutes from 2026-11-19 12:00 UTC decide, of 20 d 20 h recorded" in asked["source"]
    assert ("; raised by a factor of " in asked["source"]) == (rate < 18_000.0), "no more than the highest minute"
    assert made["group"]["verdict"] == verdict


def test_up_to_a_horizon_the_objective_takes_no_more_than_the_peak_by_then(data: Path) -> None:
    forecast(data, lambda day: 18_000.0 + 100.0 * day, objective_rates=burst(18_000.0), minutes=30_000)
    inputs = document(data, "billing", "--horizon", "7d", "--objective", "5m")["inputs"]
    assert inputs["objective_rate_per_second"]["value"] == inputs["peak_rate_per_second"]["value"] == 18_700.0
    assert inputs["objective_rate_per_second"]["source"].endswith(" to the highest minute so far or forecast")


def test_the_peak_by_choice_or_because_another_one_is_given(recorded: Path) -> None:
    chosen = document(recorded, "bursts", "--by", "peak")
    assert chosen["group"]["size_by"] == "peak"
    assert chosen["group"]["sentence"].startswith("18,000 messages/s arrive at peak")
    assert chosen["figures"]["peak_rate_per_second"]["how"] == "planned with"
    assert chosen["figures"]["objective_rate_per_second"]["value"] == 8_486.0
    typed = document(recorded, "bursts", "--peak", "20k")
    assert typed["inputs"]["objective_rate_per_second"]["value"] is None
    assert typed["figures"]["demand_rate_per_second"]["how"].startswith("peak · ")


def test_without_two_days_of_minutes_the_peak_decides_and_why(data: Path) -> None:
    forecast(data, lambda day: 10_000.0, minutes=420)
    said = " ".join(run(data, "billing").output.split())
    assert "--objective-rate ? unknown before two days of minutes are recorded (7 h so far)" in said
