"""Each page over a lake as it would be: busy, empty, young, stale, damaged, hostile."""

import json
import os
import shutil
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
import yaml
from sqlalchemy import insert, update
from streamlit.testing.v1 import AppTest

from lagwise.domain.humanise import plural
from lagwise.domain.vocabulary import Status
from lagwise.operational.heartbeats import HEARTBEATS, SILENT_SECONDS
from lagwise.operational.migrate import migrate_database
from lagwise.platform import health as heartbeats
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS
from lagwise.tables.raw import SAMPLES
from lagwise.tables.repair import inspect, repair
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_alerts.operate import queries as alert_queries
from lagwise_alerts.outbox.database import ALERTS, open_engine, transaction
from tests.dashboard import lakes
from tests.dashboard.conftest import APP, NOW, Open, clear_the_filters, offered
from tests.dashboard.lakes import LEADERLESS, Scene
from tests.dashboard.shown_charts import figures
from tests.dashboard.shown_strip import strip
from tests.dashboard.shown_tables import Shown, table, tables
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_GROUPS, QUIET_GROUPS, Story

pytestmark = pytest.mark.thorough

VIEWS = ("overview", "group", "topic", "retention", "rebalances", "alerts", "capacity", "health")


def _text(app: Any) -> str:
    """Everything the page says outside its tables, times as they are read."""
    said = [e.value for kind in ("markdown", "caption", "error", "warning", "info", "success") for e in app.get(kind)]
    said += [e.value for kind in ("header", "subheader") for e in app.get(kind)]
    said += [f"{m.label}={m.value}" for m in app.metric]
    said += [e.value for e in app.get("code")]
    return "\n".join(said).replace("\\:", ":")


def _column(table: Shown, title: str) -> list[Any]:
    return table[title]


def _beat(state: Path, part: str, line: str) -> None:
    """A heartbeat that a part left five seconds ago."""
    heartbeats.Heart(state, part).beat(line)
    file = heartbeats.folder(state) / f"{part}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"at": (NOW - timedelta(seconds=5)).isoformat()}))


@pytest.fixture
def young(tmp_path: Path) -> Lake:
    """A lake whose tables exist and are empty."""
    lake = Lake(str(tmp_path / "lake"))
    lakes.write(lake, Scene(NOW, stories=()))
    shutil.rmtree(tmp_path / "lake" / "analysis" / "ticks")
    return lake


# The overview


def test_the_overview_lists_who_is_in_trouble_worst_first(open_app: Open, busy: Path) -> None:
    app = open_app()
    groups = tables(app)[0]
    assert _column(groups, "Group")[:4] == [
        "payments-settlement",
        "clickstream-archive",
        "etl-nightly",
        "invoice-mailer",
    ]
    assert [list(s) for s in _column(groups, "Status")][:2] == [["✕ losing data"], ["▲ at risk"]]
    assert _column(groups, "Oldest unread")[0] == "≥ 1 h 30 min", "a lower bound is marked"
    assert _column(groups, "Caught up in")[0] == "never"
    assert _column(groups, "Worst partition")[0] == "payments.settled-3"
    assert _column(groups, "Lag")[0] == "412,000"
    assert _column(groups, "Members")[1:3] == ["8", "0, Empty"]
    assert "11 groups." in _text(app)
    assert "7 quiet groups: 1 unknown without members, 5 ok, 1 ghost" in [e.label for e in app.expander]


def test_unknown_numbers_are_dashes_and_never_zeros(open_app: Open, busy: Path) -> None:
    groups = tables(open_app())[0]
    row = _column(groups, "Group").index("feature-flags-audit")
    for column in ("Oldest unread", "Lag", "In/s", "Out/s", "Caught up in"):
        assert _column(groups, column)[row] is None


def test_the_verdict_leads_with_the_fact_and_the_likely_cause_follows(open_app: Open, busy: Path) -> None:
    lake, cause = Lake(str(busy / "lake")), "At 11:40:00 UTC, a member left."
    kinds = {"orders-fulfilment": "members_left", "recommendations": "already_behind"}
    rows = [
        row
        | {"sentence": f"It reads less. {cause}", "what_changed_sentence": cause, "what_changed": kinds[row["group"]]}
        if row["group"] in kinds
        else row | {"what_changed_sentence": cause}
        for row in lake.read(GROUP_STATUS).to_pylist()
    ]
    lakes.overwrite(lake, GROUP_STATUS, rows)
    groups = tables(open_app())[0]
    why = dict(zip(_column(groups, "Group"), _column(groups, "Why"), strict=True))
    assert why.pop("orders-fulfilment") == f"It reads less. {cause}"
    assert why.pop("recommendations") == f"It reads less. {cause}"
    assert not any(cause in one for one in why.values()), "it is not told where the sentence does not have it"


def test_a_trend_is_that_of_the_lag(open_app: Open, busy: Path) -> None:
    groups = tables(open_app())[0]
    status, trends = (
        dict(zip(_column(groups, "Group"), _column(groups, title), strict=True))
        for title in ("Status", "Lag, last hour")
    )
    assert list(status["billing-export"]) == ["↘ catching up"]
    assert trends["billing-export"][-1] < trends["billing-export"][0], "it falls while the group catches up"


def test_trends_are_short_and_end_with_the_present(open_app: Open, busy: Path) -> None:
    groups = tables(open_app())[0]
    trends = dict(zip(_column(groups, "Group"), _column(groups, "Lag, last hour"), strict=True))
    assert all(t is None or 0 < len(t) <= 31 for t in trends.values())
    assert (trends["orders-fulfilment"][0], trends["orders-fulfilment"][-1]) == ("0", "z"), "on its own scale"
    assert trends["session-cleaner"] is None


def test_the_data_is_dated_and_aged(open_app: Open, busy: Path) -> None:
    text = _text(open_app())
    assert "**Data as of 11:59:59 UTC**" in text
    assert ":green-badge[✓ collected 6 s ago (prod)]" in text
    assert ":green-badge[✓ analysed 4 s ago]" in text
    assert "Stale" not in text


def test_a_page_of_one_cluster_is_as_old_as_that_cluster(open_app: Open, busy: Path) -> None:
    new, old = Scene(NOW), Scene(NOW, judged_age=timedelta(minutes=10, seconds=6))
    rows = [lakes._group_status(old if s.cluster == "staging" else new, s) for s in new.stories]
    lakes.overwrite(Lake(str(busy / "lake")), GROUP_STATUS, rows)
    for view, query, as_of in (
        ("overview", {}, "11:49:59"),
        ("overview", {"cluster": "prod"}, "11:59:59"),
        ("overview", {"cluster": "staging"}, "11:49:59"),
        ("overview", {"cluster": "gone"}, "11:49:59"),
        ("group", {"cluster": "prod", "group": "checkout"}, "11:59:59"),
        ("health", {"cluster": "prod"}, "11:49:59"),
    ):
        app = open_app(view, **query)
        assert f"**Data as of {as_of} UTC**" in _text(app), (view, query)
        assert bool(app.error) == (as_of == "11:49:59"), (view, query)


@pytest.mark.parametrize(
    ("configured", "age_seconds", "as_of", "collected"),
    [
        (("prod", "staging"), 56, "11:59:09", "✓ collected 56 s ago (staging)"),
        (("prod",), 56, "11:59:59", "✓ collected 6 s ago (prod)"),
        (("prod",), 156, "11:57:29", "✕ collected 2 min 36 s ago (staging)"),
        ((), 56, "11:59:09", "✓ collected 56 s ago (staging)"),
    ],
)
def test_what_the_settings_do_not_name_dates_a_page_only_when_it_is_late(
    open_app: Open,
    tmp_path: Path,
    configured: tuple[str, ...],
    age_seconds: int,
    as_of: str,
    collected: str,
) -> None:
    """The made-up cluster of the demo is sampled once a minute, and makes no page look old between two samples."""
    settings = Path(os.environ["LAGWISE_CONFIG"])
    tree = yaml.safe_load(settings.read_text())
    tree["clusters"] = [cluster for cluster in tree["clusters"] if cluster["name"] in configured]
    settings.write_text(yaml.safe_dump(tree))
    new = Scene(NOW)
    old = Scene(NOW, sample_age=timedelta(seconds=age_seconds), promised=timedelta(seconds=30))
    lake = Lake(str(tmp_path / "lake"))
    lake.create(*ALL_TABLES)
    for cluster, scene in (("prod", new), ("staging", old)):
        lakes.append(lake, SAMPLES, (row for row in lakes._samples(scene) if row["cluster"] == cluster))
    rows = [lakes._group_status(old if s.cluster == "staging" else new, s) for s in new.stories]
    lakes.append(lake, GROUP_STATUS, rows)
    lakes.append(lake, TICKS, lakes._ticks(new))
    text = _text(open_app())
    assert f"**Data as of {as_of} UTC**" in text
    assert f"-badge[{collected}]" in text


@pytest.mark.parametrize(
    ("sample_age", "tick_age", "said", "unsaid"),
    [
        (60, 4, "The cluster **prod** has not been collected for 1 min (expected every 15 s).", "The analysis has"),
        (
            6,
            90,
            "The analysis has not finished a round for 1 min 30 s (expected every 15 s).",
            "has not been collected",
        ),
    ],
)
def test_stale_data_is_called_stale_separately(
    open_app: Open, tmp_path: Path, sample_age: int, tick_age: int, said: str, unsaid: str
) -> None:
    scene = Scene(NOW, sample_age=timedelta(seconds=sample_age), tick_age=timedelta(seconds=tick_age))
    lakes.write_to(tmp_path, scene)
    app = open_app()
    assert len(app.error) == 1
    assert said in app.error[0].value
    assert unsaid not in app.error[0].value
    assert ":red-badge[✕ " in _text(app)


def test_samples_that_wait_between_a_healthy_collector_and_a_healthy_analysis_are_reported(
    open_app: Open, tmp_path: Path
) -> None:
    lakes.write_to(tmp_path, Scene(NOW, judged_age=timedelta(seconds=135)))
    app = open_app()
    assert "The newest judged sample of **prod** is 2 min 15 s old (expected at most 1 min 50 s)." in app.error[0].value
    assert "The analysis has" not in app.error[0].value
    assert ":red-badge[✕ 2 min 15 s old]" in _text(app)
    assert "samples wait on the way" in _text(open_app("health"))


def test_the_page_and_the_terminal_call_the_same_data_stale(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, judged_age=timedelta(seconds=110)))
    assert not open_app().error, "three intervals of both and 20 s, as in tests/app/test_lake_queries.py"


def test_a_new_start_is_called_that_until_its_first_data_can_be_there(
    open_app: Open, young: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = NOW - timedelta(seconds=25)
    monkeypatch.setattr("lagwise_dashboard.context.started_at", lambda: started)
    nothing = _text(open_app())
    assert ":blue-badge[… collected not yet (prod)]" in nothing
    assert ":blue-badge[… analysed not yet]" in nothing
    assert (
        "**Starting.** Waiting for the first sample of **prod**, the first sample of **staging** and the first round "
        in nothing
    )
    assert "of the analysis, expected within 1 min of the start." in nothing
    assert "Nothing has been collected yet" not in nothing
    assert "Data as of —" not in nothing
    lakes.append(young, SAMPLES, lakes._samples(Scene(NOW, hours=0.005)))
    collected = open_app()
    assert ":green-badge[✓ collected 6 s ago (prod)]" in _text(collected)
    assert ":blue-badge[… analysed not yet]" in _text(collected)
    assert not collected.error
    assert "**Starting.** Waiting for the first round of the analysis, expected" in _text(collected)
    assert "Collected, not analysed yet" not in _text(collected)
    health = open_app("health")
    assert table(health, "collection")["State"] == ["✓ fresh", "✓ fresh"]
    assert "Lagwise is healthy" not in _text(health)
    monkeypatch.setattr("lagwise_dashboard.context.started_at", lambda: NOW - timedelta(hours=1))
    assert not open_app().error, "the analysis was started with the first sample"
    monkeypatch.setattr("lagwise_dashboard.context.now", lambda: NOW + timedelta(seconds=65))
    assert "The analysis has never finished a round" in open_app().error[0].value


def test_a_restart_over_old_data_says_how_old_it_is(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age = timedelta(hours=8)
    lakes.write_to(tmp_path, Scene(NOW, sample_age=age, tick_age=age))
    for seconds, starting in ((5, True), (59, True), (61, False)):
        started = NOW - timedelta(seconds=seconds)
        monkeypatch.setattr("lagwise_dashboard.context.started_at", lambda started=started: started)
        app = open_app()
        said = "of the start. What you see below is 8 h old." in _text(app)
        assert (said, bool(app.error)) == (starting, not starting)
        assert ("… starting" in table(open_app("health"), "collection")["State"]) == starting


def test_a_start_that_meets_an_error_is_no_start_any_more(
    open_app: Open, young: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lagwise_dashboard.context.started_at", lambda: NOW - timedelta(seconds=25))
    lakes.append(
        young, SAMPLES, [_in_vain(row) for row in lakes._samples(Scene(NOW, stories=QUIET_GROUPS, hours=0.005))]
    )
    assert ":red-badge[✕ collected never (prod)]" in _text(open_app())


@pytest.mark.parametrize(
    ("age_ms", "said"),
    [
        (110_400, "just over 1 min 50 s old, the most expected"),
        (111_600, "1 min 52 s old (expected at most 1 min 50 s)"),
    ],
)
def test_an_age_and_what_it_may_be_never_read_alike(open_app: Open, tmp_path: Path, age_ms: int, said: str) -> None:
    lakes.write_to(tmp_path, Scene(NOW, judged_age=timedelta(milliseconds=age_ms)))
    assert f"The newest judged sample of **prod** is {said}." in open_app().error[0].value


def test_filters_in_the_address_are_applied(open_app: Open, busy: Path) -> None:
    app = open_app(status=["stopped", "stalled"], q="IN", cluster="prod")
    assert sorted(_column(tables(app)[0], "Group")) == ["fraud-scoring", "invoice-mailer"]
    assert not app.expander, "chosen statuses leave nothing to fold"
    assert strip(app).chosen == ["stopped", "stalled"]
    assert app.text_input(key="q").value == "IN"


def test_a_topic_is_found_too_and_a_wildcard_is_just_a_letter(open_app: Open, busy: Path) -> None:
    assert _column(tables(open_app(q="clicks"))[0], "Group") == ["clickstream-archive"]
    app = open_app(q="%")
    assert not tables(app)
    assert "**No group matches.**" in _text(app)
    clear_the_filters(app)
    assert tables(app)[0].rows == 11
    assert app.text_input(key="q").value == ""


def test_another_order(open_app: Open, busy: Path) -> None:
    app = open_app()
    app.selectbox(key="sort").select("lag").run()
    assert _column(tables(app)[0], "Group")[:2] == ["clickstream-archive", "search-reindexer"]


def test_quiet_groups_unfold(open_app: Open, busy: Path) -> None:
    app = open_app()
    app.session_state["overview_quiet"] = True
    app.run()
    assert _column(tables(app)[1], "Group")[0] == "console-consumer-41275"
    assert "checkout" in _column(tables(app)[1], "Group")


def test_all_well(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, stories=QUIET_GROUPS))
    app = open_app()
    assert "All is well: none of 5 groups is in trouble." in app.success[0].value
    assert not tables(app)


def test_nothing_collected_yet(open_app: Open, tmp_path: Path) -> None:
    app = open_app()  # not even a folder
    text = _text(app)
    assert "**Nothing has been collected yet.**" in text
    assert "lagwise up --bootstrap kafka-1.prod:9092" in text
    assert "Stale" not in text


_REFUSED = [{"kind": "unreachable", "count": 1, "example": "kafka-1.prod:9092: connection refused"}]


def _in_vain(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a run that could not read anything."""
    return row | {"errors": _REFUSED, "groups": 0, "group_partitions": 0, "partitions": 0}


@pytest.mark.parametrize("view", ["overview", "group", "topic", "retention", "rebalances", "health"])
def test_a_cluster_that_was_never_read_is_named_with_the_reason(open_app: Open, young: Lake, view: str) -> None:
    rows = lakes._samples(Scene(NOW, stories=QUIET_GROUPS))
    lakes.append(young, SAMPLES, [_in_vain(row) for row in rows])
    app = open_app(view)
    text = _text(app)
    assert "**The cluster prod cannot be read**: unreachable" in app.error[0].value
    assert "connection refused" in app.error[0].value
    assert "Nothing answers there. Check the bootstrap address and port" in text
    assert "not analysed yet" not in text
    assert "The analysis has" not in text


def test_a_cluster_that_cannot_be_read_any_more_is_stale_whatever_its_collector_does(
    open_app: Open, young: Lake
) -> None:
    rows = list(lakes._samples(Scene(NOW, stories=QUIET_GROUPS)))
    lakes.append(young, SAMPLES, [rows[0], *(_in_vain(row) for row in rows[1:])])
    text = _text(open_app("health"))
    assert "✕ collected" in text
    assert "The cluster **prod** has not been collected for" in text
    assert "unreachable" in text
    assert "**prod cannot be read**: unreachable" in text


def test_collected_but_not_judged_yet(open_app: Open, young: Lake) -> None:
    lakes.append(young, SAMPLES, lakes._samples(Scene(NOW, stories=QUIET_GROUPS)))
    text = _text(open_app())
    assert "**Collected, not analysed yet.** The newest sample is 6 s old" in text
    assert "The analysis has never finished a round" in text


# The group page


def test_the_group_page_says_what_is_wrong_and_what_to_do(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="payments-settlement")
    text = _text(app)
    assert "✕ losing data" in app.error[0].value
    assert "Since 11:18:59 UTC, for 41 min." in text
    assert "Oldest unread=≥ 1 h 30 min" in text
    assert "- 214 records were given up within 1 h" in text
    assert "\n- 96 records wait in payments" in text
    assert "Lost in all=18\\,240" in text
    assert "Loss in=now" in text
    assert "Commits expire in=6 d 22 h" in _text(open_app("group", cluster="prod", group="invoice-mailer"))
    assert any("firing for 40 min 30 s" in link.label for link in app.get("page_link"))
    text = _text(open_app("group", cluster="prod", group="payments-settlement", tab="commands"))
    partitions = tables(open_app("group", cluster="prod", group="payments-settlement", tab="partitions"))[0]
    assert _column(partitions, "Partition")[0] == "3"
    assert list(_column(partitions, "Status")[0]) == ["✕ losing data", "↗ falling behind"]
    assert _column(partitions, "Member")[0] == "payments.settled-worker-0 · 10.20.112.11"
    members = tables(open_app("group", cluster="prod", group="payments-settlement", tab="members"))[0]
    assert _column(members, "Partitions")[0] == "payments.settled 0, 3, 6, 9"
    assert "--command-config client.properties --describe --members --verbose --group=payments-settlement" in text
    assert "--reset-offsets --to-latest --dry-run" in text


def test_the_charts_show_lag_rates_status_and_marks(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    figure = figures(app)[0]
    names = [t.get("name") for t in figure["data"]]
    assert {"age", "written", "read"} <= set(names)
    assert figure["layout"]["uirevision"] == "prod/orders-fulfilment/1 h"
    (marks,) = [t["customdata"] for t in figure["data"] if t.get("mode") == "markers"]
    assert any("Status: ok → ↗ falling behind" in m for m in marks)
    assert any("Rebalance" in m for m in marks)
    assert all(len(t.get("x", [])) <= 500 for t in figure["data"])


def test_a_group_without_members_has_none_however_many_it_had(open_app: Open, busy: Path) -> None:
    text = _text(open_app("group", cluster="prod", group="invoice-mailer", tab="members"))
    assert "The group has no members." in text


def test_the_overview_counts_idle_members_beside_all(open_app: Open, busy: Path) -> None:
    groups = tables(open_app(status=["ok", "stopped"]))[0]
    members = dict(zip(_column(groups, "Group"), _column(groups, "Members"), strict=True))
    assert members["inventory-sync"].endswith(", 2 idle")
    assert members["invoice-mailer"] == "0, Empty"


def test_idle_members_are_explained(open_app: Open, busy: Path) -> None:
    text = _text(open_app("group", cluster="prod", group="inventory-sync", tab="members"))
    assert "2 members own nothing" in text


def test_why_it_is_unknown(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="feature-flags-audit", tab="partitions")
    assert "? unknown: no commit" in app.info[0].value
    assert list(_column(tables(app)[0], "Status")[0]) == ["? unknown", "nothing has been committed yet"]
    assert "Unknown: Oldest unread, Lag, Written /s, Read /s; nothing has been committed yet." in _text(app)
    assert "—" not in [metric.value for metric in app.metric], "a box with a dash in it tells nothing"


def test_the_overview_begins_with_what_is_wrong_and_why(open_app: Open, busy: Path) -> None:
    shown = tables(open_app("overview"))[0]
    assert shown.titles[:3] == ["Status", "Group", "Why"]
    assert all(shown["Why"])


def test_nothing_unknown_is_shown_for_an_unreadable_group(open_app: Open, tmp_path: Path) -> None:
    sentence = "The group could not be read."
    locked = Story(
        "locked", Status.UNKNOWN, "none", sentence, partitions=0, members=0, state="", reason="unreadable", lag=None
    )
    lakes.write_to(tmp_path, Scene(NOW, stories=(locked,)))
    for tab, why in (
        ("partitions", "Unknown: the group could not be read."),
        ("members", "Unknown: the group could not be described."),
    ):
        app = open_app("group", cluster="prod", group="locked", tab=tab)
        assert "The group could not be read" in app.info[0].value
        assert why in _text(app)
        assert "no members" not in _text(app)


def test_the_time_range_of_the_address(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="orders-fulfilment", range="15m")
    assert "in the last 15 min" in _text(app), "its last change of status was half an hour ago"
    app = open_app("group", cluster="prod", group="orders-fulfilment", range="a while")
    assert "1 rebalance" not in _text(app)
    assert "3 events in the last 1 h." in _text(app), "the default"
    assert "`range` must be one of 15m, 1h, 6h, 24h, 7d, not “a while”." in app.warning[0].value


def test_an_unknown_group_is_no_error(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="no-such-group")
    assert "There is no group “no\\-such\\-group” in the cluster **prod**." in app.warning[0].value
    assert offered(app)[1:]
    assert not app.error


def test_without_a_group_in_the_address_one_can_be_chosen(open_app: Open, busy: Path) -> None:
    app = open_app("group")
    assert offered(app)[1:][0] == "✕ payments\\-settlement (prod)"
    assert len(offered(app)[1:]) == len(GROUPS_OF_THE_DEMO)
    app.text_input(key="q").set_value("SETTLE").run()
    assert offered(app)[1:] == ["✕ payments\\-settlement (prod)"]
    app.text_input(key="q").set_value("no such group").run()
    assert offered(app)[1:] == []
    assert "No group has this in its name." in _text(app)


def test_of_very_many_groups_any_is_found_by_its_name(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    (ok,) = (row for row in lake.read(GROUP_STATUS).to_pylist() if row["group"] == "checkout")
    lakes.overwrite(lake, GROUP_STATUS, [ok | {"group": f"group-{n:04}"} for n in range(1_200)])
    app = open_app("group")
    assert "1–20 of 1,200 groups. Type a part of the name to find another." in _text(app)
    assert offered(open_app("group", page="60"))[-1] == "✓ group\\-1199 (prod)", "and by its page"
    app.text_input(key="q").set_value("1199").run()
    assert offered(app)[1:] == ["✓ group\\-1199 (prod)"]
    assert "1199" in open_app("group", group="group-1199").header[0].value


def test_a_group_without_its_cluster_is_found_while_only_one_has_it(open_app: Open, busy: Path) -> None:
    assert "stopped" in open_app("group", group="etl-nightly").error[0].value


# Alerts and health


def test_alerts_deliveries_and_history(open_app: Open, busy: Path) -> None:
    app = open_app("alerts")
    text = _text(app)
    assert "Firing=5" in text
    assert "Pending=1" in text
    assert "1 message could not be delivered" in app.error[0].value
    opened, pending, ended, sent = tables(app)
    assert len(_column(opened, "About")) == 5
    assert _column(pending, "About") == ["orders-fulfilment (prod)"]
    assert _column(pending, "Notified") == ["Not yet"]
    assert _column(ended, "About") == ["billing-export (prod)"]
    assert _column(ended, "Lasted") == ["26 min 30 s"]
    assert sorted(set(_column(sent, "State"))) == ["… queued", "✓ delivered", "✕ undelivered"]
    assert "12" in _column(sent, "Attempts")


def test_what_another_alert_covers_is_not_pending(open_app: Open, busy: Path) -> None:
    engine = open_engine(f"sqlite:///{busy / 'lagwise.db'}")
    [etl] = [one for one in alert_queries.open_alerts(engine) if one.subject.group == "etl-nightly"]
    with transaction(engine) as connection:
        is_pending = ALERTS.c.group == "orders-fulfilment"
        connection.execute(update(ALERTS).where(is_pending).values(inhibited_by=etl.incident_id))
    engine.dispose()
    app = open_app("alerts")
    text = _text(app)
    assert "Pending=0" in text
    assert "Covered=1" in text
    covered = tables(app)[1]
    assert _column(covered, "About") == ["orders-fulfilment (prod)"]
    assert _column(covered, "Covered by") == ["etl-nightly (staging)"]
    assert "Pending" not in [title.value for title in app.subheader]
    assert "covered by another alert" in [trace.get("name") for trace in figures(app)[0]["data"]]


def test_each_alert_says_of_what_time_its_sentence_is(open_app: Open, busy: Path) -> None:
    engine = open_engine(f"sqlite:///{busy / 'lagwise.db'}")
    with transaction(engine) as connection:
        is_etl = ALERTS.c.group == "etl-nightly"
        connection.execute(update(ALERTS).where(is_etl).values(last_as_of=NOW - timedelta(minutes=3)))
    engine.dispose()
    opened = tables(open_app("alerts"))[0]
    said = dict(zip(_column(opened, "About"), _column(opened, "As of"), strict=True))
    assert said.pop("etl-nightly (staging)") == "11:57:05 UTC"
    assert set(said.values()) == {"12:00:05 UTC"}


def test_a_group_that_is_ok_has_nothing_to_catch_up_with(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    rows = [row | {"lag": 7} if row["status"] == "ok" else row for row in lake.read(GROUP_STATUS).to_pylist()]
    lakes.overwrite(lake, GROUP_STATUS, rows)
    name = next(row["group"] for row in rows if row["status"] == "ok")
    text = _text(open_app("group", group=name))
    assert "Lag=7" in text
    assert "Caught up in" not in text


def test_nothing_fires(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW))
    assert "No alert process has left a heartbeat" in _text(open_app("alerts"))
    _beat(tmp_path, "alerts", "7 rules and nothing open")
    app = open_app("alerts")
    assert "No open alerts. The rules were evaluated 5 s ago: 7 rules and nothing open" in app.success[0].value


def test_health_when_all_is_well(open_app: Open, busy: Path) -> None:
    _beat(busy, "collector", "prod: 16 groups")
    app = open_app("health")
    assert "Lagwise is healthy" in app.success[0].value
    clusters = tables(app)[0]
    assert _column(clusters, "Cluster") == ["prod", "staging"]
    assert _column(clusters, "State") == ["✓ fresh", "✓ fresh"]
    assert _column(clusters, "Groups") == ["16", "2"]
    lake = table(app, "lake")
    assert lake["Rows"][lake["Table"].index("analysis/group_status")] == str(len(GROUPS_OF_THE_DEMO))
    assert _column(tables(app)[2], "Report") == ["prod: 16 groups"]


def test_health_shows_the_processes_of_all_machines(open_app: Open, busy: Path) -> None:
    _beat(busy, "collector", "prod: 16 groups")
    engine = open_engine(f"sqlite:///{busy / 'lagwise.db'}")
    migrate_database(engine)
    hosts = {"node-7": NOW - timedelta(seconds=9), "node-8": NOW - timedelta(seconds=SILENT_SECONDS + 1)}
    with transaction(engine) as connection:
        for pod, (host, at) in enumerate(hosts.items()):
            row = {"id": pod, "process": "analysis", "at": at, "line": "a round", "host": host, "pid": 1}
            connection.execute(insert(HEARTBEATS).values(**row, machine=host, started=1))
    engine.dispose()
    shown = table(open_app("health"), "processes")
    assert shown["Process"] == ["analysis", "analysis", "collector"]
    assert shown["Host"] == ["node-7", "node-8", socket.gethostname()]
    assert shown["State"] == ["✓ reports", "✕ silent", "✓ reports"]
    assert shown["PID"] == ["1", "1", str(os.getpid())]


def test_health_says_what_to_do(open_app: Open, tmp_path: Path) -> None:
    errors = {"prod": [{"kind": "group_not_authorized", "count": 3, "example": "committed offsets of group x: denied"}]}
    lakes.write_to(tmp_path, Scene(NOW, errors=errors, sample_age=timedelta(minutes=20)))
    app = open_app("health")
    said = "\n".join(w.value for w in app.warning)
    assert "**prod has not been collected for 20 min**" in said
    assert "errors in the last hour**, of 1 kind" in said
    assert "Grant the account Describe on these groups" in _text(app)
    assert _column(tables(app)[1], "Kind") == ["group_not_authorized"]


def test_health_lists_findings_on_clusters_and_their_brokers(open_app: Open, tmp_path: Path) -> None:
    kafka = {
        "brokers": [
            {"name": "1", "role": "broker", "rack": "a", "clock_ahead_seconds": -90.0},
            {"name": "3", "role": "broker", "rack": "b"},
        ],
        "replicas": [LEADERLESS],
        "offsets_topic_replicas": 3,
        "offsets_topic_min_isr": 2,
    }
    rocketmq = {
        "system": "rocketmq",
        "brokers": [
            {"name": "broker-a", "role": "broker", "disk_used": 0.91},
            {"name": "broker-b", "role": "broker", "gone_at": NOW - timedelta(minutes=5)},
        ],
        "errors": [{"kind": "disk_full", "count": 1, "example": "broker-a: its disk is 91% full"}],
    }
    lakes.write_to(tmp_path, Scene(NOW, facts={"prod": kafka, "staging": rocketmq}))
    app = open_app("health")
    findings = table(app, "cluster_findings")
    assert list(zip(findings["Cluster"], findings["Finding"], strict=True)) == [
        ("prod", "no leader"),
        ("prod", "clock differs"),
        ("staging", "disk full"),
        ("staging", "broker gone"),
    ]
    assert findings["What was found"][0].startswith("2 partitions have no leader (orders-3, orders-4).")
    assert findings["What to do"][0] == "Broker 2 is not in the cluster: start it."
    brokers = table(app, "brokers")
    assert {name: brokers[name] for name in ("Broker", "Rack", "Disk used", "Clock off by", "Gone")} == {
        "Broker": ["1", "3", "broker-a", "broker-b"],
        "Rack": ["a", "b", None, None],
        "Disk used": [None, None, "91 %", None],
        "Clock off by": ["1 min 30 s", None, None, None],
        "Gone": [None, None, None, "5 min ago"],
    }
    assert table(app, "collection")["Offset replicas"] == ["3, min ISR 2", None]


def test_health_counts_the_samples_that_are_missing(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, skipped = lakes._samples, {f"prod-{i}" for i in (300, 301, 302, 320, 330)}
    with monkeypatch.context() as patch:
        patch.setattr(lakes, "_samples", lambda scene: (r for r in made(scene) if r["sample_id"] not in skipped))
        lakes.write_to(tmp_path, Scene(NOW))
    app = open_app("health")
    assert _column(tables(app)[0], "Missing") == ["5", "0"]
    [said] = [warning.value for warning in app.warning]
    assert said.startswith("**5 samples of prod are missing in the last hour**: one is due every 15 s")
    assert not app.success, "it is not called healthy"


def test_health_of_a_cluster_that_was_never_collected(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, stories=tuple(s for s in GROUPS_OF_THE_DEMO if s.cluster == "prod")))
    app = open_app("health")
    assert "**staging has never been collected.**" in app.warning[0].value
    assert _column(tables(app)[0], "Newest sample") == ["6 s ago", "never"]


# Trouble


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_over_nothing(open_app: Open, view: str) -> None:
    app = open_app(view, cluster="prod", group="x") if view == "group" else open_app(view)
    assert "Something went wrong" not in _text(app)


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_over_empty_tables(open_app: Open, young: Lake, view: str) -> None:
    app = open_app(view)
    assert "Something went wrong" not in _text(app)


@pytest.mark.parametrize("view", ["overview", "group", "topic", "retention", "rebalances", "health"])
def test_a_corrupt_data_file_is_one_clear_line(open_app: Open, busy: Path, view: str) -> None:
    for file in (busy / "lake" / "analysis" / "group_status").glob("*.parquet"):
        file.write_bytes(b"PAR1 this is no parquet")
    app = open_app(view, cluster="prod", group="checkout") if view == "group" else open_app(view)
    text = _text(app)
    assert "analysis\\/group\\_status" in text
    assert "lagwise doctor" in text
    assert "Traceback" not in text
    assert "Something went wrong" not in text


def test_a_corrupt_log_is_one_clear_line(open_app: Open, busy: Path) -> None:
    for file in (busy / "lake" / "analysis" / "group_status" / "_delta_log").glob("*.json"):
        file.write_text("{ not json")
    app = open_app()
    assert "cannot read the table" in app.error[0].value
    assert "Something went wrong" not in _text(app)
    health = open_app("health")
    assert "analysis\\/group\\_status" in health.error[0].value
    assert {"Collection", "Lake", "Processes"} <= {header.value for header in health.subheader}, "the rest is there"
    sizes = next(table for table in tables(health) if "Size" in table.titles)
    shown = dict(zip(_column(sizes, "Table"), _column(sizes, "Size"), strict=True))
    assert (shown["analysis/group_status"], shown["raw/commits"] is None) == (None, False)


def test_damaged_history_is_left_out_and_named_until_it_is_quarantined(open_app: Open, busy: Path) -> None:
    """The rest is shown. Once it is quarantined, the page on health counts it."""
    lake = Lake(str(busy / "lake"))
    lost = [Path(file) for file in lake.files(GROUP_HISTORY)]
    for file in lost:
        file.unlink()
    app = open_app()
    [left_out] = [error.value for error in app.error if "left out" in error.value]
    assert left_out.startswith(f"**{plural(len(lost), 'damaged file')} left out of the pages**")
    assert "lagwise doctor --repair" in left_out
    assert _column(tables(app)[0], "Group"), "the groups are there"
    repair(lake, inspect(lake), NOW)
    assert "left out" not in _text(open_app())
    health = open_app("health")
    assert any(
        "damaged files quarantined**" in warning.value or "damaged file quarantined**" in warning.value
        for warning in health.warning
    )
    counted = next(table for table in tables(health) if "Last" in table.titles)
    assert (_column(counted, "Table"), _column(counted, "Files")) == (["analysis/group_history"], [f"{len(lost):,}"])


def test_a_corrupt_database_costs_only_the_alerts(open_app: Open, busy: Path) -> None:
    for file in busy.glob("lagwise.db*"):
        file.unlink()
    (busy / "lagwise.db").write_bytes(b"this is no database, however long it may be" * 100)
    app = open_app("alerts")
    assert "cannot use the database" in app.error[0].value
    assert "lagwise doctor" in app.error[0].value
    assert not open_app().error, "the overview does without shared incidents"
    app = open_app("group", cluster="prod", group="checkout")
    assert "cannot use the database" in app.error[0].value
    assert "read as fast as they are written" in app.success[0].value, "the rest of the page stands"


def test_pages_without_settings_say_how_to_serve_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lagwise_dashboard.context._in_use", None)
    app = AppTest.from_file(str(APP), default_timeout=30).run()
    assert not app.exception
    assert "these pages were started without settings" in app.error[0].value


def test_a_fault_of_ours_is_one_line_with_a_reference(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("lagwise_dashboard.widgets.freshness.strip", fail)
    app = open_app()
    assert "Something went wrong in the dashboard itself." in app.error[0].value
    assert "a fault" not in app.error[0].value
    assert "a fault" in caplog.text, "the log has the details"


@pytest.mark.parametrize("story", HOSTILE_GROUPS, ids=lambda s: repr(s.group[:12]))
def test_hostile_names_stay_names(open_app: Open, hostile: Path, story: Any) -> None:
    from lagwise_dashboard.escaping import markdown, visible

    assert visible(story.group) in _column(tables(open_app())[0], "Group")
    app = open_app("group", cluster="prod", group=story.group)
    assert app.header[0].value == markdown(story.group)
    assert any(markdown(story.sentence) in e.value for e in app.error)


def test_new_data_is_seen_at_the_next_refresh(open_app: Open, busy: Path) -> None:
    app = open_app()
    lake = Lake(str(busy / "lake"))
    rows = lake.read(GROUP_STATUS).to_pylist()
    lakes.overwrite(lake, GROUP_STATUS, [r for r in rows if r["group"] != "payments-settlement"])
    app.run()
    assert _column(tables(app)[0], "Group")[0] == "clickstream-archive"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The seconds between two refreshes, as each run has asked for them; None: for none."""
    found: list[float | None] = []
    fragment = st.fragment

    def spy(function: Any, **settings: Any) -> Any:
        if "run_every" in settings:  # not so the finder, whose module may be imported only now
            found.append(settings["run_every"])
        return fragment(function, **settings)

    monkeypatch.setattr(st, "fragment", spy)
    return found


def test_a_page_refreshes_itself_until_it_is_paused(open_app: Open, busy: Path, asked: list[float | None]) -> None:
    app = open_app()
    assert asked == [5.0], "one fragment a page, at the interval of the settings"
    app.toggle(key="live").set_value(False).run()
    assert asked == [5.0, None]
    app.switch_page("../pages/health/health.py").run()
    assert asked == [5.0, None, None], "paused is paused on every page"
    assert dict(app.query_params) == {}, "whoever opens the link sees a page that refreshes itself"


def test_how_often_is_chosen_and_stands_in_the_address(open_app: Open, busy: Path, asked: list[float | None]) -> None:
    app = open_app()
    every = app.selectbox(key="refresh")
    assert every.options == ["every 5 s", "every 15 s", "every 1 min", "every 5 min"]
    assert every.value == "", "the setting has no name in the address"
    every.set_value("1m").run()
    assert asked[-1] == 60.0
    assert app.query_params["refresh"] == "1m"
    app.selectbox(key="refresh").set_value("").run()
    assert asked[-1] == 5.0
    assert "refresh" not in app.query_params
    open_app("health", refresh="5m")
    assert asked[-1] == 300.0
    app = open_app("health", refresh="5s")
    assert (asked[-1], app.selectbox(key="refresh").value) == (5.0, ""), "the same as the setting"
    app = open_app("health", refresh="1s")
    assert asked[-1] == 5.0
    assert "`refresh` must be one of 5s, 15s, 1m, 5m, not “1s”." in app.warning[0].value
