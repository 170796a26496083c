"""The pages on topics, retention and rebalances, and what the group page and the overview show beside their tables."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest

from lagwise.config import Config
from lagwise.config.model import DashboardSettings
from lagwise.domain.vocabulary import Status
from lagwise.platform.errors import ConfigError
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_dashboard import escaping
from lagwise_dashboard.pages.group import first_steps
from lagwise_dashboard.pages.rebalances import member_lanes
from lagwise_dashboard.pages.topic import topic_partitions
from lagwise_dashboard.widgets import browser_window
from tests.dashboard import lakes, storm
from tests.dashboard.conftest import NOW, Open, clear_the_filters, offered
from tests.dashboard.lakes import Scene
from tests.dashboard.sent_lines import times_of, unpacked
from tests.dashboard.shown_charts import figures
from tests.dashboard.shown_strip import strip
from tests.dashboard.shown_tables import table, tables
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_GROUPS, WIDE_GROUP, Story
from tests.dashboard.test_views import _column, _text

pytestmark = pytest.mark.thorough


def _figure(app: Any, number: int = 0) -> dict[str, Any]:
    return figures(app)[number]


def _story(group: str) -> Story:
    return next(s for s in GROUPS_OF_THE_DEMO if s.group == group)


# Topic


def test_a_topic_shows_its_slowest_reader_next_to_its_retention(open_app: Open, busy: Path) -> None:
    app = open_app("topic", cluster="prod", topic="clicks")
    said = app.warning[0].value.replace("\\:", ":")
    assert "The topic keeps records for 2 h." in said
    assert "unread records of **clickstream\\-archive** in 52 min at the earliest: at 12:51:59 UTC." in said
    readers, partitions, leaders = tables(app)
    assert _column(readers, "Group") == ["clickstream-archive"]
    assert _column(readers, "Retention used") == ["57 %"]
    assert _column(readers, "Deleted in") == ["52 min"]
    assert "**2 not in sync.**" in _text(app)
    assert sorted(set(_column(partitions, "Replica state"))) == ["▲ not all in sync", "✓ in sync", "✕ no leader"]
    shares = [float(share.removesuffix(" %")) for share in _column(partitions, "Share") if share]
    assert sum(shares) == pytest.approx(100, abs=1), "each is rounded"
    assert sum(n or 0 for n in leaders.order["Leads"]) == 23, "one has no leader"


def test_a_topic_whose_readers_keep_up_is_calm(open_app: Open, busy: Path) -> None:
    app = open_app("topic", cluster="prod", topic=_story("orders-fulfilment").topic)
    assert "less than 1 % of that" in app.success[0].value
    assert "Deleted in" in tables(app)[0].titles


def test_a_topic_without_its_cluster_is_found_while_only_one_has_it(open_app: Open, busy: Path) -> None:
    assert "The topic keeps records" in open_app("topic", topic="clicks").warning[0].value


def test_an_unknown_topic_is_no_error_and_one_can_be_chosen(open_app: Open, busy: Path) -> None:
    app = open_app("topic", cluster="prod", topic="no-such-topic")
    assert "No watched group reads a topic “no\\-such\\-topic” in the cluster **prod**." in app.warning[0].value
    assert "clicks (prod) · 1 group" in offered(app)
    assert offered(open_app("topic")) == offered(app)
    assert offered(open_app("topic", q="CLICK")) == ["clicks (prod) · 1 group"]


def test_what_the_system_does_not_report_has_no_column() -> None:
    row = {
        "topic": "t", "partition": 10_003, "label": None, "rate_per_second": 1.0, "leader": 1,
        "isr": None, "replicas": None, "log_start": 0, "high_watermark": 9,
        "slowest_group": None, "lag_seconds": None, "error": None, "replica_state": "readable",
    }  # fmt: skip
    of_rocketmq = topic_partitions.columns([row | {"label": "broker-b q3"}], 1.0)
    assert [list(c.cells) for c in of_rocketmq if c.title == "Queue"] == [["broker-b q3"]]
    assert not {"In sync", "Replicas", "Replica state"} & {column.title for column in of_rocketmq}
    of_kafka = topic_partitions.columns([row | {"replica_state": "in_sync", "isr": [1], "replicas": [1]}], 1.0)
    assert {"In sync", "Replicas", "Replica state"} <= {column.title for column in of_kafka}
    assert "Queue" not in {column.title for column in of_kafka}


# Retention risk


def test_everything_that_will_be_lost_soonest_first(open_app: Open, busy: Path) -> None:
    app = open_app("retention")
    table = tables(app)[0]
    assert _column(table, "Group") == ["payments-settlement", "clickstream-archive", "invoice-mailer"]
    assert _column(table, "In") == ["now", "52 min", "6 d 22 h"], "from the moment of the data on, as in every verdict"
    assert _column(table, "At") == ["11:59:59 UTC", "12:51:59 UTC", "2026-11-28 10:39:59 UTC"]
    bars = _column(table, "Earliest to latest")
    assert [text for _, _, text in bars] == ["now", "52 min to 1 h 40 min", "6 d 22 h"]
    (now, _, _), (earliest, latest, _), (moment, same, _) = bars
    assert now == 0.0 < earliest < latest < moment == same < 1.0
    assert _column(table, "What") == ["deletion", "deletion", "expiry"]
    assert _column(table, "Partitions") == ["2, soonest 3", "5, soonest 7", "6, soonest 0"]
    assert _column(table, "Kept for") == ["7 d", "2 h", "7 d"]
    assert "Losing now=1\nWithin 6 h=1\nLater=1" in _text(app)


def test_filters_of_the_retention_page_are_in_the_address(open_app: Open, busy: Path) -> None:
    app = open_app("retention", within="6h")
    assert _column(tables(app)[0], "Group") == ["payments-settlement", "clickstream-archive"]
    app = open_app("retention", q="click")
    assert _column(tables(app)[0], "Group") == ["clickstream-archive"]
    app = open_app("retention", within="1h", cluster="staging")
    assert "Nothing that matches the filters will be lost" in app.success[0].value
    app = open_app("retention", within="nonsense")
    assert tables(app)[0].rows == 3
    assert "`within` must be one of 1h, 6h, 24h, 7d, any, not “nonsense”." in app.warning[0].value


# Rebalances


def test_the_rebalances_of_all_groups_storms_first(open_app: Open, busy: Path) -> None:
    app = open_app("rebalances")
    table = tables(app)[0]
    assert _column(table, "Group")[0] == "session-cleaner"
    assert _column(table, "Storm")[:2] == ["▲ storm", None]
    assert _column(table, "Downtime")[0] == "≤ 45 s"


def test_a_group_s_members_each_have_a_lane(open_app: Open, busy: Path) -> None:
    app = open_app("rebalances", cluster="prod", group="orders-fulfilment")
    assert "Rebalances=2\nDowntime=≤ 6\\.4 s\nPartitions moved=8" in _text(app)
    figure = _figure(app)
    lanes = figure["layout"]["yaxis2"]["ticktext"]
    assert lanes == [f"orders-worker-{m} · 10.20.74.{11 + m}" for m in range(3)]
    counts, bars = ([t for t in figure["data"] if t.get("yaxis", "y") == axis] for axis in ("y", "y2"))
    assert [t["name"] for t in bars] == ["owns partitions"]
    assert bars[0]["y"].count(0) == 3, "it was thrown out twice, and came back as another member of the same name"
    assert set(bars[0]["text"]) == {"2", "3"}
    assert counts[0]["y"] == [1, 1]
    assert len(figure["layout"]["shapes"]) == 2
    assert len(tables(app)) == 2


def test_an_unknown_group_is_shown_as_unknown(open_app: Open, busy: Path) -> None:
    app = open_app("rebalances", cluster="prod", group="no-such-group")
    assert "No members or rebalances of “no\\-such\\-group” were recorded in the last 1 h." in app.info[0].value


def test_two_members_of_one_name_have_two_lanes_and_one_that_came_back_keeps_its_own() -> None:
    def period(member: str, begun: int, ended: int, client: str = "c") -> dict[str, Any]:
        who = {"member_id": member, "client_id": client, "host": "/h", "static_instance_id": None}
        when = {"from_at": NOW + timedelta(seconds=begun), "to_at": NOW + timedelta(seconds=ended)}
        return {**who, **when, "assignment": [], "assigned_partitions": 0}

    found = member_lanes.lanes(
        [period("a", 0, 50), period("b", 10, 90), period("c", 60, 99), period("a", 50, 55), period("z", 0, 9, "d")]
    )
    assert [(lane.name, [r["member_id"] for r in lane.periods]) for lane in found] == [
        ("c · h #1", ["a", "a", "c"]),
        ("d · h", ["z"]),
        ("c · h #2", ["b"]),
    ], "in the order in which they were first seen"


def test_members_that_restart_under_their_own_name_are_not_among_those_that_stay() -> None:
    def stays(name: str, seconds: int, *, static: bool = False, changes: bool = False) -> list[dict[str, Any]]:
        """An hour of stays of so many seconds; each is another member, or if it only ``changes`` the same one."""
        return [
            {
                "member_id": name if changes else f"{name}-{begun}", "client_id": name, "host": "/h",
                "static_instance_id": name if static else None, "assignment": [], "assigned_partitions": 0,
                "from_at": NOW + timedelta(seconds=begun),
                "to_at": NOW + timedelta(seconds=begun + seconds - (0 if changes else 1)),
            }
            for begun in range(0, 3_600, seconds)
        ]  # fmt: skip

    lanes = member_lanes.lanes(
        [
            *stays("restarts", 60), *stays("static", 60, static=True), *stays("moves", 60, changes=True),
            *stays("deployed", 1_200), *stays("gone", 1_200)[:1],
        ]
    )  # fmt: skip
    assert len(lanes) == 5
    assert [lane.name for lane in member_lanes.that_stay(lanes)] == ["deployed · h", "moves · h"]


def test_members_are_in_natural_order_and_too_many_can_be_asked_for(open_app: Open, busy: Path) -> None:
    at = [NOW - timedelta(seconds=30 * i) for i in range(20, 0, -1)]
    samples = [
        {"sample_id": f"many-{i}", "cluster": "prod", "sampled_at": t, "group": "many"} for i, t in enumerate(at)
    ]
    lake = Lake(str(busy / "lake"))
    lakes.append(lake, GROUPS, samples)
    lakes.append(
        lake,
        MEMBERS,
        [
            s | {"member_id": f"m{m}", "client_id": f"w-{m}", "host": "/h", "assigned_partitions": 1,
                 "assignment": [{"topic": "t", "partitions": [m + (i if m == 69 else 0)]}]}
            for i, s in enumerate(samples) for m in range(70)
        ],
    )  # fmt: skip
    app = open_app("rebalances", cluster="prod", group="many")
    assert _figure(app)["layout"]["xaxis2"]["range"][0] == at[0].isoformat(), "the axis begins with the data"
    hour = {"from": f"{NOW - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}", "to": f"{NOW:%Y-%m-%dT%H:%M:%SZ}"}
    app = open_app("rebalances", cluster="prod", group="many", **hour)
    names = _figure(app)["layout"]["yaxis2"]["ticktext"]
    assert names == [f"w-{m} · h" for m in (*range(59), 69)], "the one that changed is among them"
    assert "The 60 of 70 members that changed most are drawn." in _text(app)
    (crowd,) = [t for t in _figure(app)["data"] if t.get("name") == "changed this often"]
    assert (crowd["y"], crowd["text"]) == ([59], ["20×"])
    app.toggle(key="all_lanes").set_value(True).run()
    assert app.query_params["all_lanes"] == "yes"
    assert len(_figure(app)["layout"]["yaxis2"]["ticktext"]) == 70
    assert "members that changed most" not in _text(app)


def test_of_a_storm_the_rate_is_drawn_and_a_lane_for_those_that_stay(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    storm.write_crash_loop(lake, NOW)
    app = open_app("rebalances", cluster="prod", group=storm.CRASH_LOOP)
    figure = _figure(app)
    rates, joined, left = (
        next(t for t in figure["data"] if t["name"] == name) for name in ("rebalances", "joined", "left")
    )
    assert sum(rates["y"]) == storm.CRASHES, "bins of a minute each: their sum is the number of rebalances"
    assert max(rates["y"]) == pytest.approx(20, abs=1), "every three seconds"
    assert rates["x"][20] == "2026-11-21T11:30:00+00:00"
    assert rates["customdata"][20] == "21 rebalances, 21 per minute; most often: member failed"
    assert joined["customdata"][20] == 21 == left["customdata"][20]
    assert sum(joined["y"]) == storm.CRASHES == -sum(left["y"])
    assert figure["layout"]["yaxis3"]["ticktext"] == [f"stays-{n} · 10.0.0.1" for n in range(storm.STAYING)]
    assert not figure["layout"].get("shapes"), "no band for each"
    assert "Bars stand for 1 min each." in _text(app)
    assert "1,039 of 1,045 members have no lane: they were in the group for less than half of the time" in _text(app)
    app.toggle(key="all_lanes").set_value(True).run()
    assert len(_figure(app)["layout"]["yaxis3"]["ticktext"]) == 1_045
    app = open_app("rebalances", cluster="prod", group=storm.CRASH_LOOP, range="15m")
    rates = next(t for t in _figure(app)["data"] if t["name"] == "rebalances")
    assert "Bars stand for 10 s each." in _text(app)
    assert 17 <= max(rates["y"]) <= 24, "per minute, whatever the width"


@pytest.mark.parametrize(
    ("seconds_ago", "shown"),
    [(60, "1h"), (3_590, "1h"), (3_700, "6h"), (23 * 3_600, "24h"), (6.9 * 86_400, "7d"), (8 * 86_400, "1h")],
)
def test_without_a_choice_the_range_reaches_back_to_the_last_rebalance(
    open_app: Open, busy: Path, seconds_ago: float, shown: str
) -> None:
    story = Story("seldom", Status.OK, "flat", "It is ok.", rebalances_seconds_ago=(seconds_ago,))
    scene = Scene(NOW, stories=(story,))
    lake = Lake(str(busy / "lake"))
    lakes.append(lake, EVENTS, list(lakes._events(scene)))
    lakes.append(lake, REBALANCE_STATS, list(lakes._rebalance_stats(scene)))
    app = open_app("rebalances", cluster="prod", group="seldom")
    assert app.get("button_group")[0].value == shown
    assert "range" not in app.query_params, "nobody has chosen it"
    assert ("this is the shortest range that has any" in _text(app)) == (shown != "1h")
    assert [table.rows for table in tables(app)][-1:] == ([1] if seconds_ago < 8 * 86_400 else [])
    app = open_app("rebalances", cluster="prod", group="seldom", range="1h")
    assert app.get("button_group")[0].value == "1h"
    assert "this is the shortest range" not in _text(app)


# The group page


def test_a_loss_to_come_is_a_clock(open_app: Open, busy: Path) -> None:
    text = _text(open_app("group", cluster="prod", group="clickstream-archive"))
    assert "Unread records of **clicks-7** are deleted **from 12:51:59 UTC** on, in 52 min (at the latest at " in text
    assert "Then clicks-8, clicks-9, clicks-10 and clicks-11 in 52 min." in text
    text = _text(open_app("group", cluster="prod", group="payments-settlement"))
    assert "Records of **payments\\.settled-3** and 1 other partition **are being deleted unread now**." in text
    text = _text(open_app("group", cluster="prod", group="invoice-mailer"))
    assert "The broker deletes the committed offsets of this group **at 2026-11-28 10:39:59 UTC**" in text
    assert ":material/hourglass" not in _text(open_app("group", cluster="prod", group="checkout"))


def test_every_number_of_a_group_is_of_the_moment_that_was_judged(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, judged_age=timedelta(seconds=36), sample_age=timedelta(seconds=6)))
    about = {"cluster": "prod", "group": "clickstream-archive"}
    app = open_app("group", **about)
    text = _text(app)
    assert "will be deleted in 52 min" in text, "the sentence of the analysis"
    assert "Loss in=52 min" in text
    assert (
        "on, in 52 min (at the latest at 13:39:29 UTC, as whole segments are deleted). Then clicks-8, clicks-9, "
        "clicks-10 and clicks-11 in 52 min." in text
    )
    assert "for 25 min." in text, "since when the group has its status: until it was judged, not until now"
    assert _column(tables(app)[-1], "Lasted") == ["≥ 25 min"]
    (partitions,) = tables(open_app("group", **about, tab="partitions"))
    assert set(_column(partitions, "Loss in")) == {"52 min", None}
    app = open_app("group", **about, tab="members")
    members = tables(app)[0]
    assert f"{members.rows} members, as of 11:59:29 UTC." in _text(app), "the newest that was judged, not a newer"


def test_a_page_waits_for_the_second_table_of_a_round(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(busy / "lake"))
    later = NOW + timedelta(seconds=9)
    groups, partitions = (
        [row | {"as_of": later, "lag": 7} for row in lake.read(table).to_pylist() if row["group"] == "audit-log"]
        for table in (GROUP_STATUS, PARTITION_STATUS)
    )
    lakes.overwrite(lake, PARTITION_STATUS, partitions)
    pauses: list[float] = []

    def analysis_goes_on(seconds: float) -> None:
        pauses.append(seconds)
        lakes.overwrite(lake, GROUP_STATUS, groups)

    monkeypatch.setattr("lagwise_dashboard.pages.group.current_round.sleep", analysis_goes_on)
    app = open_app("group", cluster="prod", group="audit-log", tab="partitions")
    assert len(pauses) == 1
    assert "Lag=7\n" in _text(app)
    assert _column(tables(app)[0], "Lag") == ["7", "7", "7"]


def test_lag_of_unknown_partitions_stands_next_to_the_sum_that_leaves_it_out(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    rows = [
        row | ({"status": "unknown", "reason": "rebalancing", "lag": 100} if row["partition"] else {"lag": 0})
        for row in lake.read(PARTITION_STATUS).to_pylist()
        if row["group"] == "audit-log"
    ]
    lakes.overwrite(lake, PARTITION_STATUS, rows)
    text = _text(open_app("group", cluster="prod", group="audit-log"))
    assert "Lag=0\n" in text
    assert "Lag, unknown status=200\n" in text


def test_where_every_status_is_unknown_the_lag_is_the_one_that_the_verdict_names(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    for stored, changed in ((GROUP_STATUS, {"lag": None}), (PARTITION_STATUS, {"lag": 100})):
        rows = [
            row | ({"status": "unknown", "reason": "rebalancing"} | changed if row["group"] == "audit-log" else {})
            for row in lake.read(stored).to_pylist()
        ]
        lakes.overwrite(lake, stored, rows)
    text = _text(open_app("group", cluster="prod", group="audit-log"))
    assert "Lag=300\n" in text
    assert "Lag, unknown status" not in text


def test_partitions_have_a_heat_map_below_their_spread(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="clickstream-archive", tab="partitions")
    figure = _figure(app, 0)
    unknown, heat = (trace for trace in figure["data"] if trace["type"] == "heatmap")
    assert [trace["name"] for trace in figure["data"] if trace["type"] == "scatter"] == [
        "worst", "95th percentile", "median",
    ]  # fmt: skip
    axes = figure["layout"]
    assert (heat["xaxis"], axes["xaxis"]["matches"]) == ("x2", "x2"), "one axis of time"
    names = axes["yaxis2"]["ticktext"]
    assert [re.sub("<.*?>", "", name) for name in names] == [f"{p}" for p in range(24)]
    assert "tab=partitions&amp;partitions_q=clicks-7" in names[7], "its row of the table"
    links, lines = axes["meta"], {t["name"]: t for t in figure["data"] if t["type"] == "scatter"}
    assert [link.rpartition("-")[2] for link in links[:24]] == [f"{p}" for p in range(24)], "the rows of the heat map"
    assert links[lines["worst"]["customdata"][-1]].endswith("clicks-7"), "the worst at the end"
    assert heat["colorscale"][0][1].endswith(",0)"), "no lag is the background of the page"
    assert unknown["hovertemplate"].startswith("%{y}: unknown")
    assert "A stronger colour means more unread records" in _text(app)


def test_a_shared_chart_of_partitions_leads_each_reader_where_their_own_address_says(
    open_app: Open, busy: Path
) -> None:
    def links(**own: str) -> list[str]:
        app = open_app("group", cluster="prod", group="clickstream-archive", tab="partitions", **own)
        found: list[str] = _figure(app, 0)["layout"]["meta"]
        return found

    for own in ({}, {"refresh": "1m"}, {"range": "15m"}, {}):
        for link in links(**own):
            assert ("refresh=1m" in link, "range=15m" in link) == ("refresh" in own, "range" in own)


def test_a_group_of_one_partition_needs_no_charts_of_partitions(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, stories=(replace(_story("checkout"), partitions=1),), hours=0.1))
    app = open_app("group", cluster="prod", group="checkout", tab="partitions")
    assert figures(app) == []
    assert tables(app)[0].rows == 1


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, "What happened"),
        ({"tab": "commands"}, "Commands"),
        ({"tab": "history", "partitions_q": "7"}, "What happened"),
        ({"events_q": "status"}, "What happened"),
    ],
)
def test_a_group_s_page_shows_the_part_that_the_address_asks_for(
    open_app: Open, busy: Path, query: dict[str, str], shown: str
) -> None:
    app = open_app("group", cluster="prod", group="clickstream-archive", **query)
    assert [one.value for one in app.subheader if one.value in ("What happened", "Commands")] == [shown]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"tab": "partitions"}, "partitions"),
        ({"partitions_status": "ok"}, "partitions"),
        ({"partitions_with": "lag"}, "partitions"),
        ({"tab": "members", "partitions_q": "7"}, "members"),
        ({"members_sort": "-lag"}, "members"),
    ],
)
def test_a_link_to_a_list_of_a_group_opens_the_part_with_it(
    open_app: Open, busy: Path, query: dict[str, str], name: str
) -> None:
    app = open_app("group", cluster="prod", group="clickstream-archive", **query)
    assert table(app, name).rows


def test_only_partitions_with_lag(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    rows = lake.read(PARTITION_STATUS).to_pylist()
    lakes.overwrite(lake, PARTITION_STATUS, [r | {"lag": 0} if r["partition"] % 2 else r for r in rows])
    app = open_app("group", cluster="prod", group="clickstream-archive", partitions_with="lag")
    assert "12 partitions of **clicks** that match" in _text(app)
    app.pills(key="partitions_with").set_value(None).run()
    assert "24 partitions of **clicks**, worst first" in _text(app)


def _was_quieter(lake: Lake, ago: timedelta, share: float = 0.25) -> None:
    """Have orders-fulfilment once had this share of what it has now."""
    now = next(r for r in lake.read(GROUP_STATUS).to_pylist() if r["group"] == "orders-fulfilment")
    past = {name: now[name] * share for name in ("produce_rate_per_second", "consume_rate_per_second")}
    row = next(r for r in lake.read(GROUP_HISTORY).drop_columns("day").to_pylist() if r["group"] == now["group"])
    row |= past | {"lag": int(now["lag"] * share), "as_of": now["as_of"] - ago - timedelta(minutes=3)}
    lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows([row]))


@pytest.mark.parametrize(
    ("ago_days", "share", "told"),
    [
        (7, 0.25, "Against last Saturday at this time: 4 × the write rate, 4 × the lag."),
        (1, 0.25, "Against yesterday at this time: 4 × the write rate, 4 × the lag."),
        (7, 4.0, "Against last Saturday at this time: 0.25 × the write rate, 0.25 × the lag."),
        (7, 0.8, None),
    ],
)
def test_what_differs_much_from_an_earlier_day_is_told_with_the_verdict(
    open_app: Open, busy: Path, ago_days: int, share: float, told: str | None
) -> None:
    _was_quieter(Lake(str(busy / "lake")), timedelta(days=ago_days), share)
    text = _text(open_app("group", cluster="prod", group="orders-fulfilment"))
    assert (told in text) if told else "Against" not in text


def test_the_weekday_is_that_of_the_shown_zone(open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At noon of Saturday in UTC it is Sunday on Kiritimati."""
    monkeypatch.setenv("LAGWISE_DASHBOARD__TIME_ZONE", "Pacific/Kiritimati")
    _was_quieter(Lake(str(busy / "lake")), timedelta(days=7))
    text = _text(open_app("group", cluster="prod", group="orders-fulfilment"))
    assert "Against last Sunday at this time: 4 × the write rate, 4 × the lag." in text


def test_the_same_time_of_an_earlier_day_is_that_of_the_clocks(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the clocks of the zone had been changed since: a week and an hour before it was as late there as now."""
    monkeypatch.setattr(
        "lagwise_dashboard.time_zone.ShownZone.days_before", lambda _, __, days: timedelta(days=days, hours=1)
    )
    _was_quieter(Lake(str(busy / "lake")), timedelta(days=7, hours=1))
    text = _text(open_app("group", cluster="prod", group="orders-fulfilment"))
    assert "Against last Saturday at this time: 4 × the write rate, 4 × the lag." in text


def test_the_charts_of_a_group_share_one_crosshair(open_app: Open, busy: Path) -> None:
    figure = _figure(open_app("group", cluster="prod", group="orders-fulfilment"), 0)
    layout = figure["layout"]
    assert layout["hoversubplots"] == "axis"
    assert {trace["xaxis"] for trace in figure["data"]} == {"x"}
    assert [layout[f"yaxis{row}"]["anchor"] for row in (2, 3, 4)] == ["x"] * 3
    assert (layout["xaxis"]["anchor"], layout["xaxis"].get("matches")) == ("y4", None)
    assert not {"xaxis2", "xaxis3", "xaxis4"} & {name for name in layout if layout[name]}
    assert {shape["xref"].split()[0] for shape in layout["shapes"]} == {"x"}


@pytest.mark.parametrize(("days", "words"), [(7, "a week before"), (1, "a day before")])
def test_the_same_hours_of_an_earlier_day_are_a_dotted_line(open_app: Open, busy: Path, days: int, words: str) -> None:
    lake = Lake(str(busy / "lake"))
    rows = lake.read(GROUP_HISTORY).drop_columns("day").to_pylist()
    ago = timedelta(days=days)
    earlier = [row | {"as_of": row["as_of"] - ago, "lag": 7, "produce_rate_per_second": 12.0} for row in rows]
    lake.append(GROUP_HISTORY, GROUP_HISTORY.from_rows(earlier))
    data = _figure(open_app("group", cluster="prod", group="orders-fulfilment"), 0)["data"]
    lag, written = (trace for trace in data if trace.get("name") == words)
    assert (set(unpacked(lag["y"])), set(unpacked(written["y"]))) == ({7}, {12.0})
    (today,) = (trace for trace in data if trace.get("name") == "written")
    assert set(times_of(today)) <= set(times_of(written)), "an earlier day is drawn at the hours of today"
    far = _figure(open_app("group", cluster="prod", group="orders-fulfilment", range="7d"), 0)["data"]
    assert (words in {trace.get("name") for trace in far}) == (days == 7)


def test_without_an_earlier_day_nothing_is_compared(open_app: Open, busy: Path) -> None:
    data = _figure(open_app("group", cluster="prod", group="orders-fulfilment"), 0)["data"]
    assert not [trace for trace in data if "before" in (trace.get("name") or "")]


def test_a_heat_map_of_more_partitions_than_rows_says_how_they_share_them(open_app: Open, tmp_path: Path) -> None:
    lakes.write_to(tmp_path, Scene(NOW, stories=(WIDE_GROUP,), hours=0.1))
    app = open_app("group", cluster="prod", group=WIDE_GROUP.group, tab="partitions")
    names = [re.sub("<.*?>", "", name) for name in _figure(app, 0)["layout"]["yaxis2"]["ticktext"]]
    assert names[0] == "211", "the worst is on top"
    assert set(names[:5]) == {"211", "212", "213", "214", "215"}
    assert names[-1] == "273 to 299"
    assert (
        "Of 300 partitions, the 30 that were worst in this span have a row each, worst first. The other 270 share the "
        "10 rows below, up to 27 in a row" in _text(app)
    )


def test_members_show_their_state(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="clickstream-archive", tab="members")
    members = tables(app)[0]
    statuses = [list(s) for s in _column(members, "Status")]
    assert statuses.count(["▲ at risk"]) == 5
    assert statuses.count(["✓ ok"]) == 3
    assert _column(members, "Oldest unread")[0] == "1 h 8 min"


def test_a_zoom_in_the_address_is_what_is_shown(open_app: Open, busy: Path) -> None:
    zoom = {"from": "2026-11-21T11:20:00Z", "to": "2026-11-21T11:30:00Z"}
    app = open_app("group", cluster="prod", group="orders-fulfilment", **zoom)
    figure = _figure(app)
    assert figure["layout"]["xaxis"]["range"] == ["2026-11-21T11:20:00+00:00", "2026-11-21T11:30:00+00:00"]
    assert len(next(times_of(t) for t in figure["data"] if t.get("name") == "read")) > 30, "asked anew, so finer"
    assert "2 events from 11:20:00 UTC to 11:30:00 UTC." in _text(app)
    app.button(key="leave_zoom").click().run()
    assert "from" not in app.query_params
    assert "3 events in the last 1 h." in _text(app)


@pytest.mark.parametrize(
    "zoom",
    [
        {"from": "yesterday", "to": "2026-11-21T11:30:00Z"},
        {"from": "2026-11-21T11:30:00Z", "to": "2026-11-21T11:20:00Z"},
        {"from": "2026-11-21T11:30:00Z", "to": "2026-11-21T11:30:10Z"},
        {"from": "1970-01-01T00:00:00Z", "to": "2026-11-21T11:20:00Z"},
        {"from": "0001-01-01T00:00:00+14:00", "to": "9999-12-31T23:59:59-14:00"},
        {"to": "2026-11-21T11:20:00Z"},
    ],
)
def test_a_zoom_that_makes_no_sense_is_left_out_and_called_so(open_app: Open, busy: Path, zoom: dict[str, str]) -> None:
    app = open_app("group", cluster="prod", group="orders-fulfilment", **zoom)
    assert "3 events in the last 1 h." in _text(app)
    assert [w for w in app.warning if "address was ignored.**" in w.value]


def test_another_range_leaves_the_zoom(open_app: Open, busy: Path) -> None:
    zoom = {"from": "2026-11-21T11:20:00Z", "to": "2026-11-21T11:30:00Z"}
    app = open_app("group", cluster="prod", group="orders-fulfilment", **zoom)
    ranges = next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])
    ranges.set_value("15m").run()
    assert "from" not in app.query_params
    assert "in the last 15 min" in _text(app)


def test_a_control_that_the_browser_drew_without_its_value_changes_nothing(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="orders-fulfilment", range="6h")
    ranges = next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])
    ranges.set_value(None).run()
    assert app.query_params["range"] == "6h"
    assert "in the last 6 h" in _text(app)
    ranges = next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])
    assert ranges.value == "6h"
    assert ranges.proto.set_value, "the browser is told again"


def test_a_control_is_sent_its_value_until_the_browser_reports_it(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that another one cuts short sends nothing of what it drew."""

    def ranges() -> Any:
        return next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])

    app = open_app("group", cluster="prod", group="orders-fulfilment", range="6h")
    with monkeypatch.context() as drawn_by_no_browser:
        drawn_by_no_browser.setattr(app._tree, "get_widget_states", WidgetStates)
        app.run()
    assert ranges().proto.set_value
    app.run()
    assert not ranges().proto.set_value, "the browser has reported it: what is typed or chosen since then stays"
    assert ranges().value == "6h"


def test_what_was_typed_is_sent_to_the_address_until_it_stands_there(open_app: Open, busy: Path) -> None:
    """A run that another one cuts short sends nothing of what it drew."""

    def sent() -> list[str]:
        places = [c for c in app.get("bidi_component") if c.proto.component_name == "lagwise_address"]
        return [json.loads(c.proto.json)["query"] for c in places]

    app = open_app("overview", cluster="prod")
    assert sent() == []
    (field,) = [f for f in app.text_input if f.proto.label == "Search"]
    field.set_value("fra").run()
    assert sent() == ["cluster=prod&q=fra"]
    app.run()
    assert sent() == ["cluster=prod&q=fra"], "the browser asks with the old query"
    app.query_params["q"] = "fra"
    app.run()
    assert sent() == []


@pytest.fixture
def chose_a_quarter_hour(open_app: Open, busy: Path, clock: list[float]) -> AppTest:
    app = open_app("group", cluster="prod", group="orders-fulfilment", range="6h")
    ranges = next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])
    ranges.set_value("15m").run()
    assert app.query_params["range"] == "15m"
    return app


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock of the address, in seconds: its last number is now."""
    seconds = [1000.0]
    monkeypatch.setattr("lagwise_dashboard.address.time", SimpleNamespace(monotonic=lambda: seconds[-1]))
    return seconds


def test_a_run_that_the_browser_asked_for_before_it_heard_of_a_choice_keeps_it(
    chose_a_quarter_hour: AppTest, clock: list[float]
) -> None:
    app = chose_a_quarter_hour
    for _ in range(2):
        app.query_params["range"] = "6h"
        clock.append(clock[-1] + 0.9)
        app.run()
        assert "in the last 15 min" in _text(app)
    ranges = next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])
    assert ranges.value == "15m"


def test_so_does_one_from_before_two_choices(chose_a_quarter_hour: AppTest, clock: list[float]) -> None:
    app = chose_a_quarter_hour
    app.query_params["range"] = "6h"
    ranges = next(b for b in app.get("button_group") if "15 min" in [o.content for o in b.proto.options])
    ranges.set_value("24h").run()
    assert app.query_params["range"] == "24h"
    app.query_params["range"] = "6h"
    clock.append(clock[-1] + 0.9)
    app.run()
    assert "in the last 24 h" in _text(app)


def test_later_it_is_a_link_to_what_was_looked_at_before(chose_a_quarter_hour: AppTest, clock: list[float]) -> None:
    app = chose_a_quarter_hour
    app.query_params["range"] = "6h"
    clock.append(clock[-1] + 2.5)
    app.run()
    assert "in the last 6 h" in _text(app)


def test_back_is_no_such_run(chose_a_quarter_hour: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    app = chose_a_quarter_hour
    app.query_params["range"] = "6h"
    monkeypatch.setattr("lagwise_dashboard.address._is_back_or_forward", lambda: True)
    app.run()
    assert "in the last 6 h" in _text(app)


def test_nor_is_a_link_to_something_else(chose_a_quarter_hour: AppTest) -> None:
    app = chose_a_quarter_hour
    app.query_params["range"] = "24h"
    app.run()
    assert "in the last 24 h" in _text(app)
    app.query_params["range"] = "6h"
    app.run()
    assert "in the last 6 h" in _text(app)


def test_a_runbook_is_linked_where_there_is_one(open_app: Open, busy: Path) -> None:
    file = busy / "lagwise.yaml"
    assert not open_app("group", cluster="prod", group="checkout").get("link_button")
    tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    tree["dashboard"]["runbook_url"] = "https://wiki.example/lag/{status}?group={group}"

    import streamlit as st

    file.write_text(yaml.safe_dump(tree), encoding="utf-8")
    st.cache_resource.clear()
    (link,) = open_app("group", cluster="prod", group="clickstream-archive").get("link_button")
    assert link.proto.url == "https://wiki.example/lag/at_risk?group=clickstream-archive"


def test_a_note_on_a_cluster_stands_where_the_cluster_may_be_shown(open_app: Open, busy: Path) -> None:
    file = busy / "lagwise.yaml"
    tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    tree["dashboard"]["cluster_notes"] = {"staging": "A *load test*."}
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")
    note = "**staging**: A \\*load test\\*\\."
    for app in (open_app(), open_app("capacity"), open_app("alerts", cluster="prod"), open_app(cluster="staging")):
        assert note in _text(app)
    assert note not in _text(open_app("group", cluster="prod", group="checkout"))


@pytest.mark.parametrize("name", ["../../admin", "a&group=b#c", "javascript:alert(1)", "<script>", "{status}"])
def test_no_name_changes_where_a_runbook_is(name: str) -> None:
    row = {"cluster": name, "group": name, "worst_topic": None, "status": "ok", "reason": None}
    found = first_steps.runbook_url("https://wiki.example/{cluster}/{group}?topic={topic}", row)
    assert found is not None
    path = found.removeprefix("https://wiki.example/").removesuffix("?topic=")
    assert path.count("/") == 1
    assert not set(path) & set("?#&<>{}:")


def test_a_runbook_is_a_web_address() -> None:
    from lagwise.config import validated

    with pytest.raises(ConfigError, match="runbook_url: must be an address http"):
        validated({"dashboard": {"runbook_url": "javascript:alert(1)"}}, where="a test")
    assert Config(dashboard=DashboardSettings(runbook_url="http://wiki/{group}")).dashboard.runbook_url


# The overview by owner


def test_groups_are_filtered_by_their_owner(open_app: Open, busy: Path) -> None:
    assert not [box for box in open_app().selectbox if box.key == "owner"], "nobody owns anything"
    rules = busy / "rules.yaml"
    owners = [
        {"groups": {"include": ["payments.*"]}, "team": "money"},
        {"groups": {"include": [".*export.*", "invoice.*"]}, "clusters": {"include": ["prod"]}, "team": "back office"},
    ]
    rules.write_text(yaml.safe_dump({"version": 1, "owners": owners, "rules": []}), encoding="utf-8")
    file = busy / "lagwise.yaml"
    tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    tree["alerts"]["rules_file"] = str(rules)
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")

    import streamlit as st

    st.cache_resource.clear()
    app = open_app()
    assert app.selectbox(key="owner").options == ["back office", "money"]
    assert tables(app)[0].rows == 11
    app = open_app(owner="back office")
    assert sorted(_column(tables(app)[0], "Group")) == ["billing-export", "invoice-mailer"]
    assert strip(app).counts["stopped"] == "1", "counts are the team's, too"
    assert {block.name for block in strip(open_app(by="owner")).blocks} == {"back office", "money", "no owner"}
    app = open_app(owner="money", q="no such group")
    assert "**No group matches.**" in _text(app)
    clear_the_filters(app)
    assert tables(app)[0].rows == 11

    rules.write_text("version: 2", encoding="utf-8")
    st.cache_resource.clear()
    app = open_app()
    assert "the alert rules in" in app.error[0].value
    assert tables(app)[0].rows == 11, "the groups are shown all the same"


# The overview as cards


def test_cards_show_the_same_as_the_table(open_app: Open, busy: Path) -> None:
    app = open_app(**{"as": "cards"})
    assert not tables(app)
    links = offered(app)
    assert links[0] == "**payments\\-settlement**"
    text = _text(app)
    assert ":red-badge[✕ losing data] for 41 min 6 s · prod" in text
    assert "oldest unread **≥ 1 h 30 min** · lag **412,000** · caught up in **never**" in text


def test_a_phone_gets_cards_and_a_desk_gets_the_table(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tables(open_app())
    monkeypatch.setattr(browser_window, "is_narrow", lambda: True)
    app = open_app()
    assert not tables(app)
    assert offered(app)


# Health


def test_health_shows_whether_compaction_keeps_up(open_app: Open, busy: Path) -> None:
    assert "Compaction keeps up: it runs every 10 min." in _text(open_app("health"))
    lake = Lake(str(busy / "lake"))
    newest = [r for r in lakes._ticks(Scene(NOW)) if r["finished_at"] > NOW - timedelta(seconds=30)]
    from lagwise.tables.rounds import TICKS

    for _ in range(450):
        lakes.append(lake, TICKS, newest[:1])
    assert "**Compaction is behind**: `analysis/ticks` has 451 files of one day." in _text(open_app("health"))


# Trouble


@pytest.mark.parametrize("story", HOSTILE_GROUPS, ids=lambda s: repr(s.group[:12]))
def test_hostile_names_stay_names_on_every_page(open_app: Open, hostile: Path, story: Any) -> None:
    app = open_app("rebalances", cluster="prod", group=story.group)
    assert app.header[0].value == f"Rebalances of {escaping.markdown(story.group)}"
    app = open_app("topic", cluster="prod", topic=story.topic)
    assert app.header[0].value == escaping.markdown(story.topic)
    assert escaping.visible(story.group) in _column(tables(app)[0], "Group")
    app = open_app("topic", cluster="prod", topic=f"no {story.group}")
    assert escaping.markdown(f"no {story.group}") in app.warning[0].value
    cards = offered(open_app(**{"as": "cards"}))
    assert f"**{escaping.markdown(story.group)}**" in cards
    app = open_app("group", cluster="prod", group=story.group)
    assert f"Topic {escaping.markdown(story.topic)}" in [link.label for link in app.get("page_link")]


@pytest.mark.parametrize("view", ["topic", "retention", "rebalances"])
def test_old_data_is_called_old_on_every_page(open_app: Open, tmp_path: Path, view: str) -> None:
    lakes.write_to(tmp_path, Scene(NOW, sample_age=timedelta(minutes=20), tick_age=timedelta(minutes=20)))
    app = open_app(view, cluster="prod", topic="clicks") if view == "topic" else open_app(view)
    assert "Stale: do not trust what you see below." in app.error[0].value
    assert "Something went wrong" not in _text(app)


def test_a_group_of_unknown_everything_has_no_clock(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    rows = [r | {"seconds_to_loss": 5.0} for r in lake.read(GROUP_STATUS).to_pylist() if r["group"] == "checkout"]
    lakes.overwrite(lake, GROUP_STATUS, rows)
    text = _text(open_app("group", cluster="prod", group="checkout"))
    assert ":material/hourglass" not in text, "no partition says so"
