"""The rest of the pages Capacity and Plan: the forecast, what if, the ramp plan, and what can be taken away."""

import csv
import io
import re
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from lagwise.domain.capacity.outlook import DayAhead, Outlook, days_by_objective
from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.simulation.what_if import WhatIfSetUp, outage, try_set_ups
from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.group_workload import running_of
from lagwise.domain.sizing.ramp_plan import ramp_plan, ramp_to
from lagwise.domain.sizing.triple_search import capacity_per_second
from lagwise.domain.sizing.workload import Concurrency, Ordering, SizeBy, Unit, Workload
from lagwise.domain.vocabulary import Status
from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS
from lagwise.tables.store import Lake
from lagwise.tables.topic_facts import demand_ahead, objective_takes
from lagwise_dashboard.pages.plan.scenarios import CURRENT, MAX_SAVED, SavedScenario, as_text, from_texts
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.report import forecast_chart, html_file
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.report.csv_file import as_csv
from lagwise_dashboard.report.current_capacity import forecast_note
from lagwise_dashboard.report.html_file import as_html
from lagwise_dashboard.report.scenarios import ComparedScenario, columns
from lagwise_dashboard.widgets.sizing import export
from tests.dashboard import lakes, planning, shown_tables
from tests.dashboard.conftest import NOW, Open
from tests.dashboard.lakes import Scene
from tests.dashboard.planning import Plan
from tests.dashboard.stories import HOSTILE_NAMES, Story
from tests.dashboard.test_capacity import BILLING, CHECKOUT, of, texts, verdict_of

pytestmark = pytest.mark.thorough

TARGET = 0.7
#: A thread does at most 66.7 a second: twelve on each of two nodes do more than arrives, on one node less.
WORKLOAD = Workload(
    t1_seconds=0.012,
    t2_seconds=0.003,
    cores=8,
    peak_rate_per_second=1_000,
    partitions=24,
    concurrency=Concurrency.POOL,
)


# --- forecast --------------------------------------------------------------------------------------------------------


def test_the_outlook_is_the_newest_forecast_of_the_days_that_are_not_over(planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    older = [row | {"made_at": row["made_at"] - timedelta(hours=1)} for row in lake.read(FORECASTS).to_pylist()]
    lakes.append(lake, FORECASTS, [row | {"peak_per_second": 1e6, "peak_high_per_second": 1e6} for row in older])
    later = NOW + timedelta(days=3)
    found = queries.outlook(lake, "prod", "carts", later)
    assert found.demand is not None
    assert len(found.days) == 87, "the day that has begun is the first one"
    assert later - timedelta(days=1) < found.days[0].at <= later
    assert found.hours[0].at >= later
    assert all(day.low <= day.peak <= day.high for day in found.days)
    assert [day.at - found.days[0].at for day in found.days] == [timedelta(days=n) for n in range(87)]
    # The topic grows until the horizon.
    assert max(day.peak for day in found.days) == pytest.approx(found.demand["forecast_peak_per_second"], rel=0.01)
    assert queries.outlook(lake, "prod", "nothing", NOW) == Outlook(None, ())


def test_the_chart_crosses_the_line_at_the_date_of_the_verdict(planned: Path) -> None:
    row = verdict_of(planned, CHECKOUT)
    outlook = queries.outlook(Lake(str(planned / "lake")), "prod", "carts", NOW)
    made = forecast_chart.chart(row, outlook, TARGET)
    usable = row["capacity_low_per_second"] * TARGET
    first = next(day.at for day in outlook.days if day.peak > usable)
    assert abs(first - row["enough_until"]) < timedelta(days=1)
    said = [a.text for a in made.layout.annotations]
    assert said == [
        "can do today: 587 to 653/s",
        "with 30 % kept free: 411/s",
        f"enough until {row['enough_until']:%Y-%m-%d}",
    ]
    assert list(made.data[2].y) == [day.peak for day in outlook.days]


def test_where_the_objective_decides_the_chart_is_of_what_it_takes(planned: Path) -> None:
    row = verdict_of(planned, BILLING)
    assert row["size_by"] == "objective"
    outlook = queries.outlook(Lake(str(planned / "lake")), "prod", "billing", NOW)
    assert outlook.demand is not None
    takes = objective_takes(outlook.demand, row["objective_seconds"], outlook.hours)
    assert takes is not None

    def of_the_verdict(day: datetime) -> list[DemandAhead]:
        return [point for point in takes.ahead if day <= point.at < day + timedelta(days=1)]

    made = forecast_chart.chart(row, outlook, TARGET)
    of_days = [of_the_verdict(day.at) for day in outlook.days]
    means = [max(point.mean for point in its) for its in of_days]
    assert list(made.data[0].y) == pytest.approx([max(point.upper for point in its) for its in of_days])
    assert list(made.data[2].y) == pytest.approx(means)
    assert made.data[2].name == "what the objective takes, with its 90 % band"
    # As far below as the mean of the busiest hour is, which the forecast has.
    hours = {r["at"]: r for r in Lake(str(planned / "lake")).read(FORECASTS).to_pylist() if r["topic"] == "billing"}
    busiest = [hours[max(its, key=lambda point: point.mean).at] for its in of_days]
    shares = [hour["low_per_second"] / hour["produce_rate_per_second"] for hour in busiest]
    assert list(made.data[1].y) == pytest.approx([mean * s for mean, s in zip(means, shares, strict=True)])
    assert days_by_objective(replace(outlook, low_shares={}), takes)[0].low == 0.0
    last = takes.ahead[-1]
    of_the_last = DayAhead(outlook.days[-1].at, last.mean * shares[-1], last.mean, last.upper)
    assert days_by_objective(outlook, replace(takes, ahead=(last,))) == (of_the_last,), "of the others nothing is left"
    nothing = replace(outlook, demand={**outlook.demand, "busy_hour_per_second": 0.0})
    assert forecast_chart.chart(row, nothing, TARGET).data[2].name == "forecast, with its 90 % band"


def test_what_is_drawn_by_the_objective_is_said_so(planned: Path) -> None:
    row = verdict_of(planned, BILLING)
    outlook = queries.outlook(Lake(str(planned / "lake")), "prod", "billing", NOW)
    said = forecast_note(row, outlook, NOW)
    assert said.startswith(
        "The chart shows what the objective takes, scaled by how much busier the busy hours become: from 60 d of "
        "history"
    )
    assert "Weights of the models" in said
    assert forecast_note(row | {"size_by": "peak"}, outlook, NOW).startswith(
        "The busiest minute of each day, from 60 d"
    )


def test_a_short_history_has_hours_ahead_but_no_days(planned: Path) -> None:
    """What an objective takes by them is in the table and in `lagwise size`, so the page works with them as well."""
    lake = Lake(str(planned / "lake"))
    rows = lake.read(DEMAND).to_pylist()
    lake.replace(DEMAND, DEMAND.from_rows([row | {"forecast_peak_per_second": None} for row in rows]))
    found = queries.outlook(lake, "prod", "billing", NOW)
    assert found.days == ()
    assert found.hours == demand_ahead(lake, NOW)["prod", "billing"].hours != ()


def test_without_a_forecast_the_reason_is_shown(open_app: Open, planned: Path) -> None:
    app = open_app("capacity", **of("prod/email-notifications"))
    assert "No forecast: there are only 3 days of history: 14 are needed." in texts(app)
    app = open_app("capacity", **of("prod/audit-log"))
    assert "No forecast: there is no history of what arrives on this topic yet." in texts(app)


# --- what if ---------------------------------------------------------------------------------------------------------


def test_lines_go_on_until_the_last_backlog_is_worked_off() -> None:
    """Hardly more is done than arrives, so that the backlog of ten minutes takes hours."""
    slow = WhatIfSetUp("Running", 2, 9)
    what_if = try_set_ups(WORKLOAD, [slow, WhatIfSetUp("Advised", 3, 12)], outage(600.0))
    outcomes = [outcome for _, outcome in what_if.outcomes]
    assert outcomes[0].drain_seconds is not None
    drained = outcomes[0].peak_lag_at_seconds + outcomes[0].drain_seconds
    assert drained > 300.0 + 600.0 + 1_800.0, "else it ends in the usual span"
    for outcome in outcomes:
        last = outcome.moments[-1]
        assert last.at_seconds == pytest.approx(1.05 * drained)
        assert last.lag == pytest.approx(0.0, abs=1e-3)
    never = try_set_ups(WORKLOAD, [WhatIfSetUp("Running", 1, 4)], outage(600.0)).outcomes[0][1]
    assert never.drain_seconds is None
    assert never.moments[-1].at_seconds == pytest.approx(300.0 + 600.0 + 1_800.0)


def test_an_outage_of_all_is_the_fluid_limit(open_app: Open, planned: Path) -> None:
    inputs = {
        "t1_ms": "12",
        "t2_ms": "3",
        "cores": "8",
        "peak_per_s": "1000",
        "partitions": "24",
        "concurrency": "pool",
        "running_nodes": "3",
        "running_threads": "12",
        "outage_min": "10",
    }
    app = open_app("plan", **inputs)
    assert "Running: 3 nodes of 12 threads." in texts(app)
    can_do = capacity_per_second(WORKLOAD, 3, 12)
    drain = 1_000 * 600 / (can_do - 1_000)
    said = re.search(
        r"Running: 3 nodes.*?The lag rises to (.*?) messages, the oldest .*? (\d+) min (\d+) s later", texts(app)
    )
    assert said is not None
    assert said[1] == "600,000"
    assert int(said[2]) * 60 + int(said[3]) == pytest.approx(drain, rel=0.01)
    app.number_input(key="running_nodes").set_value(1).run()
    assert "It is never worked off: more arrives than this can do." in texts(app)


def test_a_rolling_restart_takes_one_node_at_a_time(open_app: Open, planned: Path) -> None:
    app = open_app("capacity", what_if="rolling-restart", node_restart_s="120", **of(CHECKOUT))
    assert "One node after the other is away for 2 min." in texts(app)
    # Five of six nodes of four threads do less than the forecast peak, two of three of 21 do more.
    assert "**Running: 6 nodes of 4 threads.** The lag rises to" in texts(app)
    assert "**Advised: 3 nodes of 21 threads.** No lag worth speaking of." in texts(app)


def test_an_impossible_simulation_is_reported(open_app: Open, planned: Path) -> None:
    app = open_app("plan", partitions="20000", running_nodes="2", running_threads="2")
    assert "This cannot be simulated: partitions" in texts(app)
    app = open_app("plan", peak_per_s="0", outage_min="0")
    assert "No lag worth speaking of." in texts(app)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (None, (None, None)),
        ({"threads_per_node": 4, "t2_seconds": 0.1, "nodes": 3, "members": 6}, (3, 4)),
        ({"max_threads_per_node": 1, "unit": "member", "nodes": 3, "members": 6}, (6, 1)),
        ({"nodes": 3, "members": 6}, (3, None)),
        ({"max_threads_per_node": 1, "unit": "member", "nodes": 0, "members": 0}, (None, 1)),
    ],
)
def test_what_runs(row: dict[str, Any] | None, expected: tuple[int | None, int | None]) -> None:
    unknown = dict.fromkeys(("threads_per_node", "t2_seconds", "max_threads_per_node")) | {"unit": "node"}
    assert running_of(row and unknown | row) == expected


# --- scenarios -------------------------------------------------------------------------------------------------------


def compared(app: Any) -> dict[str, dict[str, str]]:
    """The comparison: by scenario, what stands on each line."""
    shown = shown_tables.table(app, "scenarios")
    return {name: dict(zip(shown[""], shown[name], strict=True)) for name in shown.cells if name}


def test_a_kept_scenario_stays_next_to_the_changed_one(open_app: Open, planned: Path) -> None:
    app = open_app("plan", peak_per_s="1000", cores="8")
    app.text_input(key="capacity_scenario_name").set_value("today").run()
    app.button(key="capacity_keep").click().run()
    app.number_input(key="peak_per_s").set_value(3_000.0).run()
    found = compared(app)
    assert list(found) == [CURRENT, "today"]
    assert (found["today"]["Peak"], found[CURRENT]["Peak"]) == ("1,000/s", "3,000/s")
    assert "Cores of a node" not in found["today"]  # the same in both
    workload = Workload(t1_seconds=0.012, t2_seconds=0.003, cores=8, peak_rate_per_second=1_000, partitions=24)
    before, after = (advise(replace(workload, peak_rate_per_second=peak)) for peak in (1_000, 3_000))
    assert (found["today"]["Nodes"], found[CURRENT]["Nodes"]) == (str(before.nodes), str(after.nodes or "—"))
    kept = app.query_params["scenario"]
    again = open_app("plan", peak_per_s="3000", cores="8", scenario=kept)
    assert compared(again) == found
    again.button(key="capacity_forget_0").click().run()
    assert "scenario" not in again.query_params
    assert not shown_tables.with_column(again, CURRENT)


def test_a_scenario_keeps_what_the_objective_takes() -> None:
    asked = replace(WORKLOAD, objective_rate_per_second=340.0, objective_seconds=300.0, size_by=SizeBy.PEAK)
    [kept], unreadable = from_texts([as_text(SavedScenario("kept", asked))])
    assert (kept.workload, unreadable) == (asked, 0)


def test_a_scenario_of_members_is_kept_as_one() -> None:
    asked = Workload.of_members(0.0025, Unit.SUBTASK, peak_rate_per_second=330, partitions=24)
    assert from_texts([as_text(SavedScenario("members", asked))]) == ([SavedScenario("members", asked)], 0)
    beside = columns(
        (ComparedScenario("members", advise(asked), None), ComparedScenario("nodes", advise(WORKLOAD), None))
    )
    lines, *scenarios = beside
    found = {one.title: dict(zip(lines.cells, one.cells, strict=True)) for one in scenarios}
    assert (found["members"]["Time per message"], found["nodes"]["Time per message"]) == ("2.5 ms", "—")
    assert (found["members"]["T1, waiting"], found["nodes"]["T1, waiting"]) == ("—", "12 ms")
    assert (found["members"]["Nodes"], found["members"]["Threads per node"]) == ("2 subtasks", "—")


def test_what_was_written_into_the_address_is_read_whatever_the_name_is() -> None:
    asked = replace(WORKLOAD, ordering=Ordering.PARTITION, hottest_share=0.1, outage_seconds=1 / 3)
    for name in (*HOSTILE_NAMES, "a;b=c", "", "Scenario 1"):
        assert from_texts([as_text(SavedScenario(name, asked))]) == ([SavedScenario(name[:40], asked)], 0)


@pytest.mark.parametrize(
    "text",
    ["x", "x;cores", "x;cores=two", "x;cores=nan", "x;a=b=c", "x;partitions=1e9;cores=1", "x;__class__=1"],
)
def test_an_address_that_holds_nonsense_costs_only_that(open_app: Open, planned: Path, text: str) -> None:
    assert from_texts([text]) == ([], 1)
    assert from_texts([as_text(SavedScenario("good", WORKLOAD)).replace("cores=8", "cores=1e999")]) == ([], 1)
    app = open_app("plan", scenario=[text, as_text(SavedScenario("good", WORKLOAD))])
    assert list(compared(app)) == [CURRENT, "good"]
    assert "1 scenario in the link could not be read" in texts(app)


def test_similar_names_are_distinguished(open_app: Open, planned: Path) -> None:
    names = ("", CURRENT, "a\n", "a\\n")
    app = open_app("plan", scenario=[as_text(SavedScenario(name, WORKLOAD)) for name in names])
    assert list(compared(app)) == [CURRENT, "unnamed", f"{CURRENT} (2)", "a\\n", "a\\n (2)"]


def test_more_than_a_few_are_not_kept(open_app: Open, planned: Path) -> None:
    many = [as_text(SavedScenario(f"s{i}", replace(WORKLOAD, spare_nodes=i))) for i in range(MAX_SAVED + 2)]
    app = open_app("plan", scenario=many)
    assert len(compared(app)) == 1 + MAX_SAVED
    assert app.button(key="capacity_keep").disabled
    app.text_input(key="capacity_scenario_name").set_value("s1").run()
    assert not app.button(key="capacity_keep").disabled


def test_the_ramp_leads_from_what_runs_to_the_advice(open_app: Open, planned: Path) -> None:
    app = open_app("capacity", **of(CHECKOUT))
    row = verdict_of(planned, CHECKOUT)
    shown = shown_tables.table(app, "ramp")
    plan = ramp_plan(2.0, 0.030, 0.004, running_threads=4, advised_threads=row["advised_threads_per_node"])
    assert list(shown["Threads"]) == [str(step.expected.threads) for step in plan]
    assert list(shown["When to go back"]) == [step.stop for step in plan]
    advice = advise(WORKLOAD)
    assert advice.triple is not None
    assert ramp_to(advice, advice.triple.threads_per_node) == ramp_to(advice, None) == ()


# --- what can be taken away ------------------------------------------------------------------------------------------


CHART_TAGS = ("svg", "line", "path", "rect", "circle", "text")


# --- a full downstream -----------------------------------------------------------------------------------------------


def test_behind_a_full_downstream_the_page_advises_nothing_more(open_app: Open, planned: Path) -> None:
    lake = Lake(str(planned / "lake"))
    evidence = "5 threads did 117/s with a T1 of 49 ms; 40 threads did 123/s with a T1 of 322 ms."
    said = f"Downstream is full at about 117/s: more threads, nodes or partitions would not help. {evidence}"
    measured = {"samples": 20_000, "measured_at": NOW}
    inputs = [
        {"name": "downstream_rate_per_second", "value": 117.0, "source": evidence, **measured},
        {"name": "downstream_members", "value": 1.0, "source": "probe", **measured},
    ]
    rows = lake.read(CAPACITY).to_pylist()
    lakes.overwrite(
        lake, CAPACITY, [{**row, "inputs": row["inputs"] + inputs * (row["group"] == "checkout")} for row in rows]
    )
    app = open_app("capacity", **of(CHECKOUT))
    assert said in texts(app)
    assert "the downstream" in str([tile.value for tile in app.metric]) + "".join(map(str, app.markdown))
    assert not app.code, "no command that would ask with the same T1"
    assert "How to get there" not in texts(app)
    shown = shown_tables.table(app, "capacity-inputs")
    assert "Downstream is full at" in shown["Input"]
    plan = open_app("plan", **of(CHECKOUT))
    assert said in texts(plan)
    plan.number_input(key="t1_ms").set_value(12.0).run()
    assert said not in texts(plan), "with another T1 it is another downstream"
    assert plan.code


class _Tags(HTMLParser):
    """Every tag with its attributes, and the text that is neither script nor style."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.text.append(data)


def report_of(lake: Lake, row: dict[str, Any]) -> CapacityReport:
    """What the page would hand over for a row."""
    advice = advise(WORKLOAD)
    what_if = try_set_ups(WORKLOAD, [WhatIfSetUp("Running", 3, 4)], outage(600.0))
    outlook = queries.outlook(lake, row["cluster"], row["topic"], NOW)
    kept = (ComparedScenario("=cmd", advice, what_if.outcomes[0][1]),)
    return CapacityReport(
        advice=advice,
        sources={"cores": "settings"},
        row=row,
        outlook=outlook,
        what_if=what_if,
        scenarios=kept,
        ramp=ramp_to(advice, 4),
        target_utilisation=TARGET,
        now=NOW,
    )


def test_the_csv_holds_every_number_exactly(planned: Path) -> None:
    row = verdict_of(planned, CHECKOUT)
    report = report_of(Lake(str(planned / "lake")), row)
    lines = list(csv.DictReader(io.StringIO(as_csv(report))))
    found = {(line["section"], line["name"]): line for line in lines}
    assert float(found["rests on", "t1_seconds"]["value"]) == 0.030
    assert found["rests on", "t1_seconds"]["note"].startswith("probe, from 52000, 2026-11-21T11:57:05")
    assert float(found["verdict", "capacity_low_per_second"]["value"]) == row["capacity_low_per_second"]
    assert found["verdict", "sentence"]["value"] == row["sentence"]
    assert float(found["asked", "peak_rate_per_second"]["value"]) == 1_000.0
    assert {f.label for f in report.advice.figures} <= {line["name"] for line in lines if line["section"] == "figure"}
    assert sum(line["section"] == "forecast" for line in lines) == 90
    assert sum(line["section"] == "ramp" for line in lines) == len(report.ramp) > 1
    assert float(found["what if", "Running: 3 nodes of 4 threads: peak lag"]["value"]) >= 600_000


def test_a_report_on_entered_numbers_says_so_beside_the_verdict_on_the_group(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group is tight, and no number of members carries what was typed: both are true, of two loads."""
    kept: list[CapacityReport | None] = []
    monkeypatch.setattr(export, "offer", kept.append)
    open_app("plan", **of(CHECKOUT))
    assert kept[-1] is not None
    assert "Entered by hand" not in as_html(kept[-1])
    open_app("plan", peak_per_s="900000", **of(CHECKOUT))
    assert kept[-1] is not None
    document = as_html(kept[-1])
    assert "What if, not what was measured. Entered by hand: Peak 900,000/s." in document
    assert "<td>Sized by</td><td>peak: what the objective takes is unknown</td>" in document


def test_the_source_of_what_nobody_knows_is_no_default(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[CapacityReport | None] = []
    monkeypatch.setattr(export, "offer", kept.append)
    open_app("plan", **of("prod/clickstream-archive"))
    assert kept[-1] is not None
    lines = {line["name"]: line for line in csv.DictReader(io.StringIO(as_csv(kept[-1]))) if line["section"] == "asked"}
    assert [(lines[name]["value"], lines[name]["note"]) for name in ("t1_seconds", "t2_seconds", "cores")] == [
        ("", "unknown")
    ] * 3
    assert lines["ordering"]["note"] == "default"


@pytest.mark.parametrize(
    "name", [*HOSTILE_NAMES, "=cmd|' /C calc'!A0", "@SUM(1)", "</script><img src=x onerror=alert(1)>"]
)
def test_what_is_taken_away_is_harmless_whatever_the_names_are(planned: Path, name: str) -> None:
    row = verdict_of(planned, CHECKOUT) | {"group": name, "sentence": name, "confidence": name}
    report = report_of(Lake(str(planned / "lake")), row)
    for line in csv.reader(io.StringIO(as_csv(report))):
        assert not any(cell.startswith(("=", "+", "-", "@")) and not _is_number(cell) for cell in line)
    document = as_html(report)
    page = _Tags(document)
    assert {tag for tag, _ in page.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "small", "b", "pre", "div"),
        *("table", "tr", "th", "td"),
        *("svg", "line", "path", "rect", "circle", "text"),
    }
    not_of_charts = [attributes for tag, attributes in page.tags if tag not in CHART_TAGS]
    allowed = {"lang", "charset", "http-equiv", "content", "class"}
    assert {attribute for attributes in not_of_charts for attribute in attributes} <= allowed
    assert not any(a.startswith("on") or a in ("href", "src", "style") for _, found in page.tags for a in found)
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in document
    assert html_file._safe(name) in document
    assert document.count('<div class="chart"><svg') == 3
    assert len(document) < 150_000


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", cell) is not None


def test_the_buttons_are_no_part_of_what_is_refreshed(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refresh would send them once more, and for a while also the file that was asked for."""
    inside: list[bool] = [False]
    drawn: list[bool] = []
    fragment, show = st.fragment, export._COMPONENT

    def noted_fragment(function: Any, **options: Any) -> Any:
        def noted() -> None:
            inside.append(True)
            function()
            inside.pop()

        return fragment(noted, **options)

    def noted_show(**options: Any) -> Any:
        drawn.append(inside[-1])
        return show(**options)

    monkeypatch.setattr(st, "fragment", noted_fragment)
    monkeypatch.setattr(export, "_COMPONENT", noted_show)
    open_app("capacity", **of(CHECKOUT))
    assert drawn == [False]


def test_nothing_can_be_taken_away_of_inputs_that_do_not_fit_together(
    open_app: Open, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[bool] = []
    show = export._COMPONENT

    def noted_show(*, data: dict[str, Any], **options: Any) -> Any:
        drawn.append(data["can_be_clicked"])
        return show(data=data, **options)

    monkeypatch.setattr(export, "_COMPONENT", noted_show)
    app = open_app("plan", **of(CHECKOUT), hottest_percent="1")
    assert drawn[-1] is False
    app.number_input(key="hottest_percent").set_value(None).run()
    assert drawn[-1] is True
    app.number_input(key="hottest_percent").set_value(1.0).run()
    assert drawn[-1] is False


def test_the_hottest_partition_is_that_of_the_history(open_app: Open, planned: Path) -> None:
    app = open_app("plan", **of(CHECKOUT))
    [row] = [r for r in Lake(str(planned / "lake")).read(CAPACITY).to_pylist() if f"prod/{r['group']}" == CHECKOUT]
    hottest = f"{100 * row['hottest_share']:.3g}"
    assert app.number_input(key="hottest_percent").placeholder == f"{hottest}, from the group"
    assert f"--partitions 12 --hottest-share {hottest}%" in app.code[0].value
    app.number_input(key="partitions").set_value(96).run()
    # The hottest of 12 partitions says nothing about 96.
    assert "--partitions 96" in app.code[0].value
    assert "--hottest-share" not in app.code[0].value


def test_the_report_has_the_note_on_the_cluster(planned: Path) -> None:
    report = report_of(Lake(str(planned / "lake")), verdict_of(planned, CHECKOUT))
    assert "Cluster prod" not in as_html(report)
    noted = replace(report, cluster_note="Its numbers are <invented>.")
    assert "<p><b>Cluster prod:</b> Its numbers are &lt;invented&gt;.</p>" in as_html(noted)


def test_without_a_group_there_is_a_report_all_the_same() -> None:
    report = CapacityReport(
        advice=advise(WORKLOAD), sources={"cores": "an example"}, target_utilisation=TARGET, now=NOW
    )
    assert "Capacity of a workload" in as_html(report)
    assert "asked,partitions,24,,default" in as_csv(report)
    assert "asked,cores,8,,an example" in as_csv(report)


def test_groups_of_hostile_names_have_a_whole_page(open_app: Open, tmp_path: Path) -> None:
    stories = tuple(Story(name, Status.OK, "flat", "fine", topic=name) for name in HOSTILE_NAMES)
    lake = lakes.write_to(tmp_path, Scene(NOW, stories=stories))
    planning.write(lake, NOW, tuple(Plan(name, name, 100.0, growth=0.8, seen=200.0) for name in HOSTILE_NAMES))
    assert len(lake.read(CAPACITY).to_pylist()) == len(HOSTILE_NAMES)
    app = open_app("capacity")
    for name in HOSTILE_NAMES:
        app.selectbox(key="capacity_group").set_value(f"prod/{name}").run()
        assert not app.exception
        assert "**↗ tight**" in texts(app)
        assert "The busiest minute of each day" in texts(app)
