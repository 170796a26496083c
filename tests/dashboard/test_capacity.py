"""The pages Capacity and Plan: bars and verdicts of what is known; a group's load as the start of a plan, every input
in the address, and the same answers as the domain's."""

import csv
import html
import io
import json
import re
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, expect
from streamlit.testing.v1 import AppTest

from lagwise.domain.capacity.observed import Undecided
from lagwise.domain.humanise import precise_duration, significant
from lagwise.domain.sizing.advice import advise, inputs_of
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit, Workload
from lagwise.domain.vocabulary import Status
from lagwise.links import pages
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY, OBSERVED_CAPACITY
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_app.cli import cli
from lagwise_app.cli.size import size
from lagwise_dashboard.csv_export import as_csv as table_as_csv
from lagwise_dashboard.pages.capacity import headroom, undecided
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries.listing import ListQuery
from lagwise_dashboard.report import node_chart
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.report.command import command
from lagwise_dashboard.report.csv_file import as_csv
from lagwise_dashboard.report.html_file import as_html
from lagwise_dashboard.widgets.sizing import export
from tests.dashboard import lakes, shown_tables
from tests.dashboard.browsing import Visit
from tests.dashboard.conftest import NOW, Open
from tests.dashboard.lakes import Scene
from tests.dashboard.stories import HOSTILE_NAMES, Story

pytestmark = pytest.mark.thorough

#: A group on 12 partitions, not evenly loaded, with 1.5 h of history.
CHECKOUT = "prod/checkout"


def of(name: str) -> dict[str, str]:
    """The group ``prod/checkout`` as it stands in an address."""
    cluster, _, group = name.partition("/")
    return {"cluster": cluster, "group": group}


def texts(app: AppTest) -> str:
    """Everything the page says, Markdown's backslashes removed."""
    parts = [*app.markdown, *app.caption, *app.success, *app.warning, *app.error, *app.info]
    return re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", "\n".join(str(p.value) for p in parts))


def figures(app: AppTest) -> dict[str, str]:
    found = shown_tables.table(app, "figures")
    return dict(zip(found["Figure"], found["Value"], strict=True))


def metric(app: AppTest, label: str) -> str:
    return str(next(m.value for m in app.metric if m.label == label))


# --- the page --------------------------------------------------------------------------------------------------------


def test_without_a_group_it_calculates_an_example_and_says_so(open_app: Open, busy: Path) -> None:
    app = open_app("plan")
    assert "The grey values below are an example." in texts(app)
    expected = advise(Workload(t1_seconds=0.012, t2_seconds=0.003, cores=4, peak_rate_per_second=1_000, partitions=24))
    assert expected.verdict in texts(app)
    assert metric(app, "Nodes") == str(expected.nodes) == "3"
    assert metric(app, "Threads per node") == str(expected.threads_per_node) == "12"
    assert metric(app, "Limited by") == "partitions"


def test_an_empty_lake_still_calculates(open_app: Open) -> None:
    app = open_app("plan")
    assert "The grey values below are an example." in texts(app)
    assert metric(app, "Nodes") == "3"
    assert "Nothing has been collected yet." in texts(open_app("capacity"))


def test_a_broken_lake_costs_only_the_choice_of_a_group(open_app: Open, busy: Path) -> None:
    log = busy / "lake" / GROUP_STATUS.path / "_delta_log"
    for file in log.iterdir():
        file.write_text("not a commit")
    app = open_app("plan")
    assert len(app.error) >= 1
    assert metric(app, "Nodes") == "3"


def test_every_input_can_come_from_the_address(open_app: Open, busy: Path) -> None:
    app = open_app(
        "plan",
        peak_per_s="20000",
        partitions="48",
        hottest_percent="3",
        t1_ms="16.3",
        t2_ms="4.5",
        cores="2",
        concurrency="pool",
        ordering="none",
        utilisation_percent="80",
        catch_up_min="60",
        restart_s="300",
        sized_outage_min="30",
        outage_catch_up_min="120",
        ceiling_percent="90",
        lag="1000000",
        spare_nodes="2",
        max_threads="500",
    )
    workload = Workload(
        t1_seconds=0.0163,
        t2_seconds=0.0045,
        cores=2,
        peak_rate_per_second=20_000,
        partitions=48,
        hottest_share=0.03,
        lag=1e6,
        target_utilisation=0.8,
        catch_up_seconds=3_600,
        restart_seconds=300,
        outage_seconds=1_800,
        outage_catch_up_seconds=7_200,
        share_of_ceiling=0.9,
        spare_nodes=2,
        max_threads_per_node=500,
        concurrency=Concurrency.POOL,
        ordering=Ordering.NONE,
        size_by=SizeBy.PEAK,
    )
    advice = advise(workload)
    assert advice.verdict in texts(app)
    assert "Sized by the highest minute." in texts(app), "nothing was recorded, from which to know another"
    assert "objective_s" not in [field.key for field in app.number_input]
    assert all(change.sentence in texts(app) for change in advice.changes)
    assert all(change.cost in texts(app) for change in advice.changes if change.cost)
    assert figures(app)["capacity needed"] == f"{workload.required_rate_per_second:,.0f}"
    assert app.code[0].value == command(workload)


def test_typing_changes_the_answer(open_app: Open, busy: Path) -> None:
    app = open_app("plan")
    app.number_input(key="peak_per_s").set_value(20_000.0).run()
    assert "No number of nodes and threads carries this load on 24 partitions" in texts(app)
    assert not [m.label for m in app.metric if m.value == "—" or m.label == "Nodes"]
    assert "Cheapest change:" in texts(app)
    app.selectbox(key="concurrency").set_value("pool").run()
    assert not app.exception
    assert int(metric(app, "Nodes").replace(",", "")) > 20


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        (
            {"t1_ms": "0", "t2_ms": "0"},
            "T2, on the CPU must be above 0 where T1 is 0: a message takes some time.",
        ),
        (
            {"hottest_percent": "1"},
            "Hottest partition must be from 0.04167 (4.167%), the even share of 24 partitions, to 1 (100%).",
        ),
    ],
)
def test_inputs_that_do_not_fit_together_are_named(
    open_app: Open, busy: Path, address: dict[str, str], complaint: str
) -> None:
    app = open_app("plan", **address)
    assert complaint in texts(app)
    assert len(app.metric) == 0


@pytest.mark.parametrize("bad", ["-5", "nan", "x", "1e30"])
def test_nonsense_in_the_address_is_named_and_an_example_shown(open_app: Open, busy: Path, bad: str) -> None:
    app = open_app("plan", peak_per_s=bad, partitions=bad, t1_ms=bad, **of(f"prod/{bad}"))
    assert f"peak_per_s must be a number from 0 to 1e+12, not “{bad}”." in texts(app).replace("`", "")
    assert f"There is no group “{bad}” in the cluster **prod**." in texts(app)
    assert metric(app, "Nodes") == "3"


def test_only_waiting_and_only_computing(open_app: Open, busy: Path) -> None:
    app = open_app("plan", t2_ms="0")
    assert figures(app)["threads at the formula's knee"] == "none"
    assert metric(app, "Nodes") == "2"
    app = open_app("plan", t1_ms="0")
    assert figures(app)["threads at the formula's knee"] == "4"


# --- a group's load --------------------------------------------------------------------------------------------------


def recorded(folder: Path, table: Table, group: str) -> list[dict[str, Any]]:
    """The group's rows of a table, by another way than the page's."""
    rows = Lake(str(folder / "lake")).read(table).to_pylist()
    return [row for row in rows if f"{row['cluster']}/{row['group']}" == group]


#: What a message costs, which nothing tells of a group without a verdict.
COSTS = {"t1_ms": "12", "t2_ms": "3", "cores": "4"}


def test_a_group_brings_its_peak_partitions_and_skew_with_their_provenance(open_app: Open, busy: Path) -> None:
    history = recorded(busy, GROUP_HISTORY, CHECKOUT)
    peak = max(row["produce_rate_per_second"] for row in history)
    rates = [row["produce_rate_per_second"] for row in recorded(busy, PARTITION_STATUS, CHECKOUT)]
    hottest = 100 * max(rates) / sum(rates)
    app = open_app("plan", **of(CHECKOUT), **COSTS)
    said = texts(app)
    assert f"It reads {len(rates)} partitions. Its peak was {significant(peak)} messages/s; 99 % of the time" in said
    assert f"from {len(history)} rounds of the analysis over 1 h 30 min (of the last 7 d), the newest 6 s ago." in said
    assert "Less than a day: the daily peak may not be in it." in said
    assert f"Its hottest partition now gets {hottest:.3g} % of the traffic." in said
    shown = float(app.number_input(key="peak_per_s").placeholder.removesuffix(", from the group").replace(",", ""))
    assert significant(shown) == significant(peak)
    assert app.number_input(key="partitions").placeholder == f"{len(rates)}, from the group"
    # That is the share of some minutes, with which nothing is planned.
    assert app.number_input(key="hottest_percent").placeholder == "even"
    assert app.code[0].value.endswith(f"--peak {shown:g} --partitions {len(rates)}")


def test_what_is_typed_wins_over_the_group_and_is_forgotten_with_it(open_app: Open, busy: Path) -> None:
    app = open_app("plan", **of(CHECKOUT), peak_per_s="5000", **COSTS)
    assert "--peak 5000 --partitions 12" in app.code[0].value
    app.selectbox(key="capacity_group").set_value("prod/clickstream-archive").run()
    assert not app.code  # what a message costs was the other group's
    for key, value in COSTS.items():
        app.number_input(key=key).set_value(float(value))
    app.run()
    assert "5000" not in app.code[0].value
    assert "--partitions 24" in app.code[0].value


def test_a_group_whose_rate_is_unknown_says_so(open_app: Open, busy: Path) -> None:
    app = open_app("plan", **of("prod/feature-flags-audit"))
    assert "It reads 3 partitions. The write rate is unknown." in texts(app)
    assert app.number_input(key="peak_per_s").placeholder == "unknown: enter it"


def test_hostile_names_are_shown_as_they_are(open_app: Open, tmp_path: Path) -> None:
    stories = tuple(Story(name, Status.OK, "flat", "fine") for name in HOSTILE_NAMES)
    lakes.write_to(tmp_path, Scene(NOW, stories=stories))
    app = open_app("capacity")
    for name in HOSTILE_NAMES:
        app.selectbox(key="capacity_group").set_value(f"prod/{name}").run()
        assert not app.exception
        assert "It reads 6 partitions." in texts(app)


def test_load_is_unknown_rather_than_guessed(tmp_path: Path) -> None:
    lake = lakes.write_to(tmp_path, Scene(NOW, stories=(Story("half-known", Status.OK, "flat", "fine", partitions=4),)))
    week = timedelta(days=7)
    known = queries.load(lake, "prod", "half-known", NOW - week, NOW)
    assert known is not None
    assert known.hottest_share is not None
    rows = recorded(tmp_path, PARTITION_STATUS, "prod/half-known")
    lakes.overwrite(lake, PARTITION_STATUS, [*rows[:3], rows[3] | {"produce_rate_per_second": None}])
    half = queries.load(lake, "prod", "half-known", NOW - week, NOW)
    assert half is not None
    assert half.hottest_share is None  # the one that is not known may be the hottest
    lakes.overwrite(lake, PARTITION_STATUS, [row | {"produce_rate_per_second": 0.0} for row in rows])
    idle = queries.load(lake, "prod", "half-known", NOW - week, NOW)
    assert idle is not None
    assert idle.hottest_share is None
    before = queries.load(lake, "prod", "half-known", NOW - 2 * week, NOW - week)
    assert before is not None
    assert (before.peak_rate_per_second, before.rounds, before.first_at) == (None, 0, None)
    assert queries.load(lake, "prod", "nobody", NOW - week, NOW) is None


# --- verdicts --------------------------------------------------------------------------------------------------------


def verdict_of(folder: Path, group: str) -> dict[str, Any]:
    (row,) = recorded(folder, CAPACITY, group)
    return row


#: Verdicts as judged on two days, in the order in which capacity ends.
ENDING = {
    "newer": {"verdict": "melting"},
    "does-nothing": {"verdict": "short", "is_exceeded": True, "capacity_low_per_second": 0.0},
    "short-by-more": {"verdict": "short", "is_exceeded": True, "demand_per_second": 900.0, "enough_until": NOW},
    "short-by-less": {"verdict": "short", "is_exceeded": True, "demand_per_second": 500.0, "enough_until": NOW},
    "no-slack": {"verdict": "tight", "is_exceeded": True, "enough_until": NOW + timedelta(days=9)},
    "soon": {"verdict": "tight", "enough_until": NOW + timedelta(days=3)},
    "later": {"verdict": "tight", "enough_until": NOW + timedelta(days=80)},
    "beyond-and-full": {"verdict": "oversized", "forecast_demand_per_second": 40.0, "demand_per_second": 39.0},
    "beyond": {"verdict": "enough", "forecast_demand_per_second": 40.0, "demand_per_second": 20.0},
    "no-forecast": {"verdict": "enough", "demand_per_second": 60.0},
}


def test_bars_stand_in_the_order_in_which_capacity_ends(open_app: Open, planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    usual = {"forecast_demand_per_second": None, "enough_until": None, "is_exceeded": False, "demand_per_second": 50.0}
    row = verdict_of(planned, CHECKOUT) | usual | {"capacity_low_per_second": 100.0, "capacity_high_per_second": None}
    lakes.overwrite(lake, CAPACITY, [row | {"group": name} | its for name, its in reversed(ENDING.items())])
    shown = shown_tables.table(open_app("capacity"), "headroom")
    assert shown["Group"] == list(ENDING)
    assert shown["Enough until"] == [
        None,
        *["already too small"] * 3,
        "slack already used",
        "2026-11-24",
        "2027-02-09",
        *["beyond the forecast"] * 2,
        None,
    ]
    by_verdict = shown_tables.table(open_app("capacity", headroom_sort="worst"), "headroom")
    assert [cell[0] for cell in by_verdict["Verdict"]] == [
        *[
            "? melting",
            "▲ short",
            "▲ short",
            "▲ short",
            "↗ tight",
            "↗ tight",
            "↗ tight",
            "✓ enough",
            "✓ enough",
            "↓ oversized",
        ]
    ]
    by_use = shown_tables.table(open_app("capacity", headroom_sort="used"), "headroom")
    assert by_use["Group"][:4] == ["does-nothing", "short-by-more", "short-by-less", "no-forecast"]
    bars = dict(zip(shown["Group"], shown["Used of what it can do"], strict=True))
    assert bars["does-nothing"][1:-1] == [1.1, None, None, None, None], "more than any scale holds"


def test_a_bar_has_all_rates_on_the_scale_of_what_the_group_can_do(open_app: Open, planned: Path) -> None:
    shown = shown_tables.table(open_app("capacity"), "headroom")
    assert set(shown["Group"]) == {"clickstream-archive", "checkout", "recommendations", "billing-export"}
    place = {group: i for i, group in enumerate(shown["Group"])}
    row = verdict_of(planned, CHECKOUT)
    bar = shown["Used of what it can do"][place["checkout"]]
    rates = ("demand", "peak_rate", "forecast_demand", "forecast_demand_high", "capacity_high")
    shares = [row[f"{name}_per_second"] / row["capacity_low_per_second"] / 1.5 for name in rates]
    assert bar == ["↗ tight", *(pytest.approx(share, abs=1e-3) for share in shares), row["sentence"]]
    assert shares[0] == shares[1] < shares[2] < shares[3]
    assert shown["Enough until"][place["checkout"]] == f"{row['enough_until']:%Y-%m-%d}"
    assert shown["Advised"][place["checkout"]] == "3 nodes of 21 threads"
    assert shown["Demand"][place["checkout"]] == "320/s"
    # Where the objective decides, the bar is what it took, and the highest minute an outline.
    billing = verdict_of(planned, BILLING)
    bar = shown["Used of what it can do"][place["billing-export"]]
    least = 1.5 * billing["capacity_low_per_second"]
    assert bar[1:3] == [pytest.approx(30.0 / least, abs=1e-3), pytest.approx(60.0 / least, abs=1e-3)]
    assert shown["Demand"][place["billing-export"]] == "30.0/s"
    assert shown["Advised"][place["billing-export"]] == "no change"


def undecided_line(app: AppTest) -> str:
    return next(str(fold.label) for fold in app.expander if "undecided" in fold.label)


def test_undecided_verdicts_are_one_line_that_says_what_would_decide_them(open_app: Open, planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    rows = lake.read(CAPACITY).to_pylist()
    waiting = [row for row in rows if row["verdict"] == "undecided"]
    app = open_app("capacity")
    assert undecided_line(app) == (
        f"{len(waiting)} undecided: {len(waiting) - 1} with less than a whole hour of history, "
        "1 without a real backlog so far"
    )
    assert "undecided" not in [one.name for one in shown_tables.tables(app)], "folded"
    app.session_state["capacity_undecided"] = True
    app.run()
    shown = shown_tables.table(app, "undecided")
    assert set(shown["Group"]) == {row["group"] for row in waiting}
    assert shown["Undecided"][-1] == "without a real backlog so far"
    assert "Wait: the first clock hour in which the whole topic was sampled" in texts(app)
    assert "Wait for a backlog, run the load test" in texts(app)
    again = open_app("capacity", headroom_q="email")
    assert undecided_line(again) == "1 undecided: 1 without a real backlog so far"
    assert "headroom" not in [one.name for one in shown_tables.tables(again)]


def test_the_cluster_of_the_address_is_the_only_one_and_can_be_chosen(open_app: Open, planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    rows = [row for row in lake.read(CAPACITY).to_pylist() if row["cluster"] == "prod"]
    decided = next(row for row in rows if row["verdict"] != "undecided")
    waiting = next(row for row in rows if row["verdict"] == "undecided")
    elsewhere = [one | {"cluster": "staging", "group": name} for one, name in ((decided, "a"), (waiting, "b"))]
    lakes.overwrite(lake, CAPACITY, [*rows, *elsewhere])
    app = open_app("capacity")
    assert {"a", decided["group"]} <= set(shown_tables.table(app, "headroom")["Group"])
    app.selectbox(key="cluster").set_value("staging").run()
    assert app.query_params["cluster"] == "staging"
    assert shown_tables.table(app, "headroom")["Group"] == ["a"]
    assert undecided_line(app).startswith("1 undecided: ")
    csv_rows = queries.headroom(lake, "staging").rows
    assert [row["group"] for row in csv_rows] == ["a", "b"], "a CSV has both"
    assert "No verdict matches." in texts(open_app("capacity", cluster="no-such-cluster"))


@pytest.mark.parametrize("reason", [None, *Undecided, "of_a_later_version"])
def test_what_keeps_a_verdict_undecided_is_what_the_observations_say(
    open_app: Open, planned: Path, reason: str | None
) -> None:
    lake = Lake(str(planned / "lake"))
    observed = lake.read(OBSERVED_CAPACITY).to_pylist()
    changed = [row | {"reason": reason} if row["group"] == "email-notifications" else row for row in observed]
    lakes.overwrite(lake, OBSERVED_CAPACITY, changed)
    assert queries.undecided_reasons(lake, None, "email") == {reason or "never_saturated": 1}
    app = open_app("capacity", headroom_q="email")
    expected = undecided.REASONS.get(reason or "never_saturated", ("for a reason that this version", ""))
    assert undecided_line(app).startswith(f"1 undecided: 1 {expected[0]}")


def test_every_reason_has_its_words() -> None:
    assert set(undecided.REASONS) == set(queries.UNDECIDED_REASONS)


def test_the_csv_of_the_bars_has_all_numbers_of_all_verdicts(planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    rows = lake.read(CAPACITY).to_pylist()
    text = table_as_csv(headroom.columns(queries.headroom(lake).rows, 0.7))
    lines = {(line["cluster"], line["group"], line["topic"]): line for line in csv.DictReader(io.StringIO(text))}
    assert len(lines) == len(rows)
    numbers = {
        "peak_so_far_per_second": "peak_rate_per_second",
        "demand_per_second": "demand_per_second",
        "forecast_per_second": "forecast_demand_per_second",
        "forecast_demand_high_per_second": "forecast_demand_high_per_second",
        "forecast_peak_per_second": "forecast_peak_rate_per_second",
        "planned_objective_rate_per_second": "planned_objective_rate_per_second",
        "can_do_per_second_at_least": "capacity_low_per_second",
        "can_do_per_second_at_most": "capacity_high_per_second",
    }
    for row in rows:
        line = lines[row["cluster"], row["group"], row["topic"]]
        for name, column in numbers.items():
            assert line[name] == ("" if row[column] is None else str(row[column])), name
        assert (line["verdict"], line["confidence"], line["why"]) == (
            row["verdict"],
            row["confidence"],
            row["sentence"],
        )


def test_a_group_s_verdict_comes_first_with_everything_it_rests_on(open_app: Open, planned: Path) -> None:
    app = open_app("capacity", **of(CHECKOUT))
    row = verdict_of(planned, CHECKOUT)
    assert row["verdict"] == "tight"
    assert f"**↗ tight** &nbsp; {row['sentence']}" in texts(app)
    assert metric(app, "Enough until").replace("\\", "") == f"{row['enough_until']:%Y-%m-%d}"
    assert metric(app, "Confidence") == row["confidence"]
    inputs = shown_tables.table(app, "capacity-inputs")
    assert inputs.rows == len(row["inputs"])
    t1 = inputs["Input"].index("T1, waiting")
    assert [inputs[title][t1] for title in inputs.titles[1:]] == [precise_duration(0.030), "probe", "52,000", "3 min"]
    assert "Headroom" not in [s.value for s in app.subheader]


BILLING = "prod/billing-export"


def test_the_objective_decides_and_both_rates_are_shown(open_app: Open, planned: Path) -> None:
    row = verdict_of(planned, BILLING)
    assert row["objective_rate_per_second"] == pytest.approx(30.0)  # 60/s for five minutes may wait for five more
    assert row["sentence"].startswith("30 messages/s keep the objective of 5 min")
    app = open_app("capacity", **of(BILLING))
    takes = row["planned_objective_rate_per_second"]
    assert metric(app, "Objective (5 min), so far").replace("\\", "") == "30/s", "as the sentence has it"
    assert metric(app, "Objective (5 min), with forecast").replace("\\", "") == f"{significant(takes)}/s"
    both = f"With the forecast, by the objective of 5 min: {significant(takes)}/s · by the highest minute: 66/s"
    assert both in texts(app)
    assert "What the objective takes: the busiest 5 minutes from " in texts(app)
    assert "The chart shows what the objective takes" in texts(app)
    assert metric(app, "Members") == str(row["advised_nodes"])
    assert takes < 66
    assert f"--peak 66 --partitions 6 --objective-rate {significant(takes)} --objective 300s" in app.code[0].value

    by_peak = open_app("plan", **of(BILLING), size_by="peak")
    assert both in texts(by_peak)
    assert "Sized by the highest minute" in texts(by_peak)
    assert int(metric(by_peak, "Members")) > int(metric(app, "Members"))
    assert "--by peak" in by_peak.code[0].value


def test_another_objective_and_another_peak(open_app: Open, planned: Path) -> None:
    app = open_app("plan", **of(BILLING), objective_s="0")
    assert "With the forecast, by the objective of 0 s: " in texts(app)
    assert "--objective 0s" in app.code[0].value
    app.number_input(key="peak_per_s").set_value(100.0).run()
    assert "By the objective of 0 s: — · by the highest minute: 100/s" in texts(app)
    assert "What the objective takes: unknown for another peak than the recorded one; that peak decides." in texts(app)
    assert "--objective" not in app.code[0].value
    unknown = open_app("plan", **of(CHECKOUT))
    assert "What the objective takes: unknown before two days of minutes are recorded (20 h so far); " in texts(unknown)


def test_the_verdict_fills_what_sizing_is_asked(open_app: Open, planned: Path) -> None:
    app = open_app("plan", **of(CHECKOUT))
    row = verdict_of(planned, CHECKOUT)
    assert app.number_input(key="t1_ms").placeholder == "30, from the group"
    assert app.number_input(key="t2_ms").placeholder == "4, from the group"
    assert app.number_input(key="cores").placeholder == "2, from the settings"
    assert app.selectbox(key="concurrency").placeholder == "pool, from the group"
    assert app.number_input(key="peak_per_s").placeholder == "512, from the group"  # the forecast one is higher
    assert metric(app, "Nodes") == str(row["advised_nodes"])
    assert metric(app, "Threads per node") == str(row["advised_threads_per_node"])
    app = open_app("plan", **of(CHECKOUT), t1_ms="60", concurrency="consumer-per-thread")
    assert "--t1 60ms --t2 4ms --cores 2 --peak 512" in app.code[0].value
    assert "--concurrency" not in app.code[0].value
    app.selectbox(key="capacity_group").set_value("prod/recommendations").run()
    assert "--per-message 2.5ms --peak" in app.code[0].value  # 16 members do 6,400 a second
    assert "--max-threads" not in app.code[0].value
    assert not {"Nodes", "Threads per node"} & {m.label for m in app.metric}
    assert metric(app, "Members") == str(verdict_of(planned, "prod/recommendations")["advised_nodes"])
    assert "What one node does" not in [s.value for s in app.subheader]
    assert "How much of the 2.5 ms is CPU time is unknown" in texts(app)
    app.number_input(key="t2_ms").set_value(1.0).run()
    assert "No advice: T1 and the cores of a node are not known" in texts(app)
    app.number_input(key="t1_ms").set_value(1.5)
    app.number_input(key="cores").set_value(2.0).run()
    assert metric(app, "Nodes") == "2"


def asks_of_the_group(group: str, folder: Path) -> Any:
    """What `lagwise size GROUP --json` says."""
    result = CliRunner().invoke(cli, ["size", group.partition("/")[2], "--data", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize("page", ["capacity", "plan"])
def test_the_table_both_pages_and_the_terminal_advise_the_same(open_app: Open, planned: Path, page: str) -> None:
    """Also of a group whose lag of now is many times what arrives: that is not the lag at the horizon."""
    lake = Lake(str(planned / "lake"))
    for row in lake.read(CAPACITY).to_pylist():
        group = f"{row['cluster']}/{row['group']}"
        said, app = asks_of_the_group(group, planned), open_app(page, **of(group))
        assert said["group"]["verdict"] == row["verdict"]
        if row["advice"] is None:
            assert (said["triple"], [m for m in app.metric if m.label == "Limited by"]) == (None, [])
            assert said["verdict"] in texts(app)
            continue
        assert row["advice"] == said["verdict"]
        assert said["verdict"] in texts(app)
        assert row["change"] == (said["changes"][0]["sentence"] if said["changes"] else None)
        assert row["advised_nodes"] == (said["triple"]["nodes"] if said["triple"] else None)
        for outcome in said["what_if"]["outcomes"]:
            assert f"**{outcome['set_up']}.**" in texts(app)
        ramp = shown_tables.with_column(app, "When to go back")
        assert [step["stop"] for step in said["ramp"]] == [stop for plan in ramp for stop in plan["When to go back"]]


def test_of_an_undecided_group_no_number_is_made_up(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the four that the advice rests on was measured or typed: the load test instead, on the page and in what
    is taken away."""
    kept: list[CapacityReport | None] = []
    monkeypatch.setattr(export, "offer", kept.append)
    app = open_app("plan", **of("prod/email-notifications"))
    assert app.number_input(key="t1_ms").placeholder == "unknown: enter it"
    assert "No advice: T1, T2 and the cores of a node are not known, and no number is made up." in texts(app)
    assert "Stop the group for" in texts(app)
    assert not {"Nodes", "Threads per node", "Limited by"} & {m.label for m in app.metric}
    assert not app.code
    assert kept[-1] is not None
    for taken_away in (as_html(kept[-1]), as_csv(kept[-1])):
        assert "No advice: T1, T2 and the cores of a node are not known" in taken_away
        assert "Stop the group for" in taken_away
        prose = re.sub(r"<script.*?</script>", "", taken_away, flags=re.DOTALL)
        assert not re.search(r"\b\d+ (nodes?|threads?)\b|lagwise size|Advised", prose)
    app.number_input(key="t1_ms").set_value(12.0)
    app.number_input(key="t2_ms").set_value(3.0)
    app.number_input(key="cores").set_value(4.0).run()
    assert metric(app, "Nodes") == "2"
    lines = {line["name"]: line for line in csv.DictReader(io.StringIO(as_csv(kept[-1]))) if line["section"] == "asked"}
    assert lines["cores"]["note"] == "entered"
    assert lines["peak_rate_per_second"]["note"].startswith("history of minutes, from ")
    assert lines["target_utilisation"]["note"] == "settings"
    assert lines["spare_nodes"]["note"] == "default"


def test_the_downloads_of_an_example_are_marked_as_an_example(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[CapacityReport | None] = []
    monkeypatch.setattr(export, "offer", kept.append)
    open_app("plan", cores="8")
    assert kept[-1] is not None
    assert "asked,t1_seconds,0.012,,an example" in as_csv(kept[-1])
    assert "<td>Cores of a node</td><td>8</td><td>entered</td>" in as_html(kept[-1])
    assert "<td>T1, waiting</td><td>12 ms</td><td>an example</td>" in as_html(kept[-1])


def test_a_flink_job_shows_task_slots_and_asks_for_no_spare_nodes(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[CapacityReport | None] = []
    monkeypatch.setattr(export, "offer", kept.append)
    name, lake = "prod/recommendations", Lake(str(planned / "lake"))
    job = verdict_of(planned, name) | {"unit": "subtask", "capacity_source": "busy_time", "slots_held": 1}
    others = [row for row in lake.read(CAPACITY).to_pylist() if row["group"] != "recommendations"]
    for free, reported in [
        (0, "needed (the job holds 1, and 0 are free)"),
        (99, "The task slots for "),
    ]:
        lakes.overwrite(lake, CAPACITY, [*others, job | {"slots_free": free}])
        app = open_app("plan", **of(name), spare_nodes="5")
        assert reported in texts(app)
        assert "Spare nodes (N+…)" not in [field.label for field in app.number_input]
        assert "A Flink job has no spare subtasks: keep task slots free." in texts(app)
        assert "--spare-nodes" not in app.code[0].value
        assert kept[-1] is not None
        assert reported in html.unescape(as_html(kept[-1]))
        assert "Spare nodes" not in as_html(kept[-1])
        assert reported in as_csv(kept[-1])
    # With T1, T2 and the cores nodes are sized: some of them may be spare, and slots say nothing.
    for key, value in {"t1_ms": 3.0, "t2_ms": 1.0, "cores": 4.0}.items():
        app.number_input(key=key).set_value(value)
    app.run()
    assert "Spare nodes (N+…)" in [field.label for field in app.number_input]
    assert "task slot" not in texts(app)


def test_a_group_of_several_topics_shows_the_worst_and_lets_choose(open_app: Open, planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    row = verdict_of(planned, CHECKOUT)
    other = row | {"topic": ":red[carts]", "verdict": "short", "sentence": "Too little.", "partitions": 7}
    lakes.overwrite(lake, CAPACITY, [*lake.read(CAPACITY).to_pylist(), other])
    app = open_app("capacity", **of(CHECKOUT))
    assert "**▲ short** &nbsp; Too little." in texts(app)
    app.selectbox(key="topic").set_value("carts").run()
    assert not app.exception
    assert f"**↗ tight** &nbsp; {row['sentence']}" in texts(app)
    app.selectbox(key="capacity_group").set_value("prod/recommendations").run()
    assert "**↓ oversized**" in texts(app)
    plan = open_app("plan", **of(CHECKOUT))
    assert plan.number_input(key="partitions").placeholder == "7, from the group"
    plan.selectbox(key="topic").set_value("carts").run()
    assert plan.number_input(key="partitions").placeholder == "12, from the group"


def test_a_group_without_a_verdict_says_so(open_app: Open, busy: Path) -> None:
    app = open_app("capacity", **of(CHECKOUT))
    assert "No verdict on its capacity yet." in texts(app)
    assert "No advice:" in texts(app)
    assert "No verdict on capacity yet." in texts(open_app("capacity"))
    plan = open_app("plan", **of(CHECKOUT))
    assert plan.number_input(key="t1_ms").placeholder == "unknown: enter it"
    assert "No advice:" in texts(plan)


def test_the_page_of_a_group_shows_what_is_known_and_leads_to_a_plan(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without anything typed, a plan says the same: it has the same inputs, figures and sources."""
    kept: list[CapacityReport | None] = []
    monkeypatch.setattr(export, "offer", kept.append)
    app = open_app("capacity", **of(CHECKOUT), topic="carts", outage_min="30")
    assert [field.label for field in app.number_input] == [
        *["Outage (min)", "Node restart (s)", "Running nodes", "Threads per node"]
    ], "only the what-if asks for numbers"
    [link] = [link for link in app.get("page_link") if link.label == "Plan with these numbers"]
    assert parse_qs(link.query_string) == {
        "cluster": ["prod"],
        "group": ["checkout"],
        "topic": ["carts"],
        "outage_min": ["30"],
    }
    open_app("plan", **of(CHECKOUT), outage_min="30")
    of_group, of_plan = kept
    assert of_group is not None and of_plan is not None
    assert as_csv(of_group) == as_csv(of_plan)
    open_app("capacity")
    assert kept[-1] is None
    drawn: list[object] = []
    monkeypatch.setattr(export, "_COMPONENT", lambda **options: drawn.append(options))
    open_app("capacity")
    assert drawn == [], "there is nothing to take away of all groups but the table"


@pytest.mark.parametrize(
    ("path", "query", "target"),
    [
        ("capacity", "cluster=prod&group=a%2Fb&peak_per_s=20000", "plan?cluster=prod&group=a%2Fb&peak_per_s=20000"),
        ("capacity", "scenario=", "plan?scenario="),
        ("capacity", "cluster=prod&group=checkout&outage_min=30&headroom_page=2", None),
        ("capacity", "nonsense=1", None),
        ("capacity", "", None),
        ("plan", "peak_per_s=20000", None),
    ],
)
def test_an_address_of_the_time_when_both_were_one_page_leads_to_the_plan(
    path: str, query: str, target: str | None
) -> None:
    assert pages.moved(path, query) == target


def test_a_word_of_a_later_version_is_shown_first(planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    rows = lake.read(CAPACITY).to_pylist()
    lakes.overwrite(lake, CAPACITY, [*rows[1:], rows[0] | {"verdict": "*new*"}])
    found = queries.headroom(lake, query=ListQuery(page_rows=2))
    assert (found[0]["verdict"], len(found), found.total) == ("*new*", 2, len(rows))


# --- chart and command -----------------------------------------------------------------------------------------------

of_members = st.builds(
    Workload.of_members,
    st.sampled_from([1e-6, 0.0163, 2.5]),
    st.sampled_from([Unit.MEMBER, Unit.SUBTASK]),
    peak_rate_per_second=st.sampled_from([0.0, 0.5, 1e3]),
    partitions=st.integers(1, 300),
    hottest_share=st.none() | st.just(1.0),
)
workloads = st.builds(
    Workload,
    t1_seconds=st.sampled_from([0.0, 1e-6, 0.0163, 2.5]),
    t2_seconds=st.sampled_from([3e-6, 0.0045, 1.0]),
    cores=st.sampled_from([0.5, 1, 8, 64]),
    peak_rate_per_second=st.sampled_from([0.0, 0.5, 1e3, 123456.789]),
    size_by=st.sampled_from(list(SizeBy)),
    partitions=st.integers(1, 300),
    hottest_share=st.none() | st.just(1.0),
    lag=st.sampled_from([0.0, 1e7]),
    target_utilisation=st.sampled_from([0.7, 0.55]),
    catch_up_seconds=st.sampled_from([1_800.0, 90.0]),
    restart_seconds=st.sampled_from([60.0, 0.0]),
    spare_nodes=st.integers(0, 2),
    max_threads_per_node=st.sampled_from([1_000, 20]),
    concurrency=st.sampled_from(list(Concurrency)),
    ordering=st.none() | st.sampled_from(list(Ordering)),
)


objectives = st.fixed_dictionaries(
    {"objective_rate_per_second": st.sampled_from([0.0, 0.5, 340.0, 1e5])},
    optional={"objective_seconds": st.sampled_from([0.0, 300.0, 1_800.0])},
)


@settings(max_examples=60)
@given(workloads | of_members, st.just({}) | objectives)
def test_the_command_asks_the_same(workload: Workload, objective: dict[str, float]) -> None:
    takes = {"objective_rate_per_second": workload.peak_rate_per_second} if objective else {}  # it takes no more
    workload = replace(workload, **{name: min(value, takes.get(name, value)) for name, value in objective.items()})
    words = shlex.split(command(workload))
    assert words[:2] == ["lagwise", "size"]
    result = CliRunner().invoke(size, [*words[2:], "--json"])
    assert result.exit_code == 0, result.output
    inputs = json.loads(result.output)["inputs"]
    for name, given_value in inputs.items():
        asked = inputs_of(workload)[name]
        assert given_value["value"] == (pytest.approx(asked) if isinstance(asked, float) else asked), name


@settings(max_examples=60)
@given(workloads)
def test_the_chart_shows_the_curve_below_the_lines_and_marks_the_advice(workload: Workload) -> None:
    advice = advise(workload)
    made = node_chart.chart(advice)
    lines, curve, point = made.data
    on_lines = dict(zip(lines.x, lines.y, strict=True))
    assert all(y <= on_lines[x] * (1 + 1e-9) for x, y in zip(curve.x, curve.y, strict=True))
    assert len(curve.x) <= 600
    if advice.threads_per_node:
        assert point.x[0] == advice.threads_per_node
        assert any(f"advised {advice.threads_per_node:,}" == a.text for a in made.layout.annotations)
        node = next(p.node for p in advice.points if p.node.threads == advice.threads_per_node)
        assert point.y[0] == pytest.approx(node.rate_per_second)
    assert made.layout.xaxis.range[1] >= point.x[0]


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.mark.browser
def test_the_address_keeps_what_was_chosen_and_typed(visit: Visit) -> None:
    page = visit.open("/plan")
    # Its menu draws only the first options: a group is found by a part of its name.
    page.get_by_role("combobox", name="Group").press_sequentially("check")
    page.get_by_role("option", name=CHECKOUT, exact=True).click()
    expect(page.get_by_text("It reads 12 partitions.")).to_be_visible()
    visit.settled()  # the fields below it are made anew for the group
    peak = page.get_by_role("spinbutton", name="Peak (messages/s)")
    peak.fill("5000")
    peak.press("Enter")
    page.wait_for_url(re.compile("peak_per_s=5000"))
    expect(page.get_by_text("No number of nodes and threads carries this load on 12 partitions")).to_be_visible()
    query = parse_qs(urlsplit(page.url).query)
    assert (query["cluster"], query["group"], query["peak_per_s"]) == (["prod"], ["checkout"], ["5000"])
    page.reload()
    visit.settled()
    expect(peak).to_have_value("5000")
    expect(page.get_by_role("spinbutton", name="Partitions")).to_have_attribute("placeholder", "12, from the group")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    assert visit.overflow() == 0


@pytest.mark.browser
def test_a_click_on_a_verdict_chooses_its_group_and_the_report_needs_nothing_else(
    visit: Visit, browser: Browser, tmp_path: Path
) -> None:
    page = visit.open("/capacity")
    page.get_by_role("link", name="clickstream-archive").click()
    page.wait_for_url(re.compile("group="))
    query = parse_qs(urlsplit(page.url).query)
    assert (query["cluster"], query["group"]) == (["prod"], ["clickstream-archive"])
    expect(page.locator("p", has_text="are missing at peak")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)  # of members, no node
    visit.settled()
    with page.expect_download() as download:
        page.get_by_role("button", name="Report as HTML").click()
    assert re.fullmatch(
        r"lagwise-capacity-prod-clickstream-archive-\d{4}-\d\d-\d\dT\d{6}Z\.html", download.value.suggested_filename
    )
    file = tmp_path / "report.html"
    download.value.save_as(file)
    context = browser.new_context(offline=True)
    report, asked, wrong = context.new_page(), [], []
    report.on("request", lambda request: asked.append(request.url))
    report.on("pageerror", lambda error: wrong.append(str(error)))
    report.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    report.goto(file.as_uri())
    expect(report.get_by_role("heading", name="Capacity of clickstream-archive on clicks (prod)")).to_be_visible()
    expect(report.locator(".chart > svg")).to_have_count(2)
    expect(report.locator(".chart > svg").first).to_be_visible()
    context.close()
    assert (asked, wrong) == ([file.as_uri()], [])


@pytest.mark.browser
def test_an_old_address_shows_the_plan_that_it_asked_for(visit: Visit) -> None:
    page = visit.open("/capacity?cluster=prod&group=checkout&peak_per_s=5000")
    expect(page).to_have_url(re.compile(r"/plan\?cluster=prod&group=checkout&peak_per_s=5000$"))
    expect(page.get_by_role("spinbutton", name="Peak (messages/s)")).to_have_value("5000")
    expect(page.get_by_text("address was ignored")).to_have_count(0)


@pytest.mark.browser
def test_an_old_address_never_leads_to_another_host(address: str) -> None:
    answer = httpx.get(f"{address}//example.org/capacity?peak_per_s=1", follow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["location"] == "plan?peak_per_s=1"
    assert answer.headers["x-frame-options"] == "DENY"
    assert httpx.get(f"{address}/capacity?group=checkout").status_code == 200


@pytest.mark.browser
def test_bars_are_read_and_lead_to_a_plan_with_the_group_s_numbers(visit: Visit) -> None:
    page = visit.open("/capacity")
    table = page.get_by_role("grid", name="Headroom of groups")
    bar = table.get_by_role("img", name=re.compile("^320 messages.s arrive at peak"))
    expect(bar).to_be_visible()
    # On one scale: every row has the line of its limit at the same place.
    places = table.locator("line.limit").evaluate_all("lines => lines.map(line => line.getBoundingClientRect().x)")
    assert len(places) == 4
    assert max(places) - min(places) < 1
    heights = table.locator("tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert max(heights) <= 40, "a row is one line"
    assert visit.overflow() == 0
    page.get_by_text(re.compile(r"\d+ undecided: ")).click()
    undecided_table = page.get_by_role("grid", name="Undecided verdicts on capacity")
    expect(undecided_table.get_by_role("link", name="email-notifications")).to_be_visible()
    visit.settled()
    table.get_by_role("link", name="checkout").click()
    page.wait_for_url(re.compile("group=checkout"))
    page.get_by_role("link", name="Plan with these numbers").click()
    page.wait_for_url(re.compile(r"/plan\?.*group=checkout"))
    expect(page.get_by_role("spinbutton", name="Peak (messages/s)")).to_have_attribute(
        "placeholder", "512, from the group"
    )
