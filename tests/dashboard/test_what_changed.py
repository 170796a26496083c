"""The likely cause of a backlog on the group's page, and the time per message in its charts."""

import csv
import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from sqlalchemy import insert, select, update

from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.raw import EVENTS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox.database import ALERTS, DELIVERIES, open_engine, transaction
from lagwise_dashboard.csv_export import as_csv
from lagwise_dashboard.queries import time_per_message
from lagwise_dashboard.widgets import grid
from tests.dashboard.conftest import NOW, Open
from tests.dashboard.shown_charts import figures
from tests.dashboard.shown_tables import table
from tests.lake_rows import append, overwrite, row

_CAUSE = "T1 on orders rose from 12 ms to 48 ms at 11:40:00 UTC and T2 stayed: what its handlers wait for got slower."
_REMEDY = "Look at what the handlers call."
ROSE = NOW - timedelta(minutes=20)


def measured(group: str = "orders-fulfilment", topic: str = "orders", *, t2: float | None = 0.003) -> Iterator[Any]:
    for step in range(240):
        at = NOW - timedelta(seconds=15 * step)
        slow = at >= ROSE
        t1 = 0.048 if slow else 0.012
        times = {"t1_seconds": t1, "t2_seconds": t2} if t2 is not None else {"seconds_per_message": t1}
        own = {"cluster": "prod", "group": group, "topic": topic, "measured_at": at, "sampled_at": at, "sample_id": "s"}
        yield row(SERVICE_TIMES, **own, **times, messages=250 if slow else 1000, member_id="m", threads=4)


def set_cause(
    folder: Path,
    group: str,
    *,
    is_in_sentence: bool,
    kind: str = "waiting_rose",
    at: datetime = ROSE,
    behind: bool = True,
) -> None:
    lake = Lake(str(folder / "lake"))
    rows = lake.read(GROUP_STATUS).to_pylist()
    for one in rows:
        if one["group"] == group:
            one |= {"what_changed": kind, "what_changed_at": at, "behind_since": at if behind else None}
            one |= {"what_changed_sentence": _CAUSE, "what_changed_remedy": _REMEDY}
            one["sentence"] += f" {_CAUSE}" if is_in_sentence else ""
    overwrite(lake, GROUP_STATUS, rows)


@pytest.mark.parametrize("is_in_sentence", [True, False])
def test_a_cause_that_the_sentence_names_comes_with_what_would_help(
    open_app: Open, busy: Path, is_in_sentence: bool
) -> None:
    set_cause(busy, "orders-fulfilment", is_in_sentence=is_in_sentence)
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    said = [element.value for element in (*app.warning, *app.error, *app.markdown)]
    assert sum(text.count("what its handlers wait for got slower") for text in said) == is_in_sentence
    assert any("**What would help:** Look at what the handlers call" in text for text in said) is is_in_sentence


def test_t1_and_t2_are_drawn_and_their_shift_is_marked(open_app: Open, busy: Path) -> None:
    append(Lake(str(busy / "lake")), SERVICE_TIMES, [*measured(), *measured()])
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    figure = figures(app)[0]
    assert {"T1 (waiting)", "T2 (CPU)"} <= {trace.get("name") for trace in figure["data"]}
    titles = [note["text"] for note in figure["layout"]["annotations"]]
    assert "Time per message on orders" in titles
    (marks,) = [trace for trace in figure["data"] if trace.get("mode") == "markers"]
    [at] = [x for x, text in zip(marks["x"], marks["customdata"], strict=True) if text == "T1 12 ms → 48 ms"]
    assert abs(datetime.fromisoformat(at) - ROSE) <= timedelta(seconds=15)


def test_without_a_probe_there_is_no_such_chart(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    figure = figures(app)[0]
    assert not any("Time per message" in (note.get("text") or "") for note in figure["layout"]["annotations"])


def test_the_topic_that_takes_most_time_is_drawn_and_its_whole_time_where_no_more_is_known(busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    append(lake, SERVICE_TIMES, [*measured(t2=None), *list(measured(topic="refunds"))[:3]])
    drawn = time_per_message.history(lake, "prod", "orders-fulfilment", NOW - timedelta(hours=1), NOW)
    assert set(drawn["topic"].to_pylist()) == {"orders"}
    assert set(drawn["t2_seconds"].to_pylist()) == {None}
    assert drawn["t1_seconds"].to_pylist()[0] == pytest.approx(0.012)
    other = time_per_message.history(lake, "prod", "checkout", NOW - timedelta(hours=1), NOW)
    assert other.num_rows == 0


GROUP = "orders-fulfilment"
_MOVED = NOW - timedelta(minutes=25)


def happened(app: Any) -> list[tuple[list[str], str]]:
    """What and details of each row of the list, newest first."""
    shown = table(app, "events")
    return list(zip(shown["What"], shown["Details"], strict=True))


def causes(app: Any) -> list[str]:
    return [details for what, details in happened(app) if "▶ likely cause" in what]


def move_leaders(folder: Path, kind: str = "leaders_moved") -> None:
    told = {"before": "broker 1", "after": "broker 2 (2), broker 3 (1)", "cause": "3 of 6 partitions"}
    append(
        Lake(str(folder / "lake")), EVENTS, [row(EVENTS, cluster="prod", topic="orders", at=_MOVED, kind=kind, **told)]
    )


def test_all_that_happened_is_one_list_with_its_likely_cause_marked(open_app: Open, busy: Path) -> None:
    append(Lake(str(busy / "lake")), SERVICE_TIMES, list(measured()))
    move_leaders(busy)
    set_cause(busy, GROUP, is_in_sentence=True)
    app = open_app("group", cluster="prod", group=GROUP)
    assert happened(app) == [
        (["∿ Level shift", "▶ likely cause"], "T1 12 ms → 48 ms"),
        (["⇅ Leaders moved"], "orders; broker 1 → broker 2 (2), broker 3 (1); 3 of 6 partitions"),
        (["◐ Status", "↗ falling behind"], "was ✓ ok"),
        *[(["⇄ Rebalance"], happened(app)[-1][1])] * 2,
    ]
    assert table(app, "events")["Lasted"] == [None, None, "≥ 31 min 40 s", None, None]
    figure = figures(app)[0]
    (marks,) = [trace for trace in figure["data"] if trace.get("mode") == "markers"]
    assert len(marks["x"]) == 5, "as many marks as rows"
    assert any(text.startswith("Leaders moved: orders; broker 1 →") for text in marks["customdata"])


def test_an_escalated_alert_began_before_it_was_what_it_is_now(open_app: Open, busy: Path) -> None:
    engine = open_engine(f"sqlite:///{busy / 'lagwise.db'}")
    [alert] = [one for one in queries.open_alerts(engine) if one.subject.group == "payments-settlement"]
    assert alert.fired_at is not None
    page = {"cluster": "prod", "group": "payments-settlement"}
    assert (["◆ Alert"], "◆ page: losing data") in happened(open_app("group", **page))
    escalated = alert.fired_at + timedelta(minutes=10)
    with transaction(engine) as connection:
        is_it = DELIVERIES.c.incident_id == alert.incident_id
        [first] = connection.execute(select(DELIVERIES).where(is_it, DELIVERIES.c.channel == "on-call")).mappings()
        for n, (event, at) in enumerate([("escalated", escalated), ("repeated", escalated + timedelta(minutes=5))]):
            again = {name: value for name, value in first.items() if name != "id"}
            again |= {"idempotency_key": f"again-{n}", "event": event, "created_at": at}
            connection.execute(insert(DELIVERIES).values(**again))
        is_alert = ALERTS.c.incident_id == alert.incident_id
        connection.execute(update(ALERTS).where(is_alert).values(notified_rules=["stalled", "losing_data"]))
    engine.dispose()
    st.cache_data.clear()
    app = open_app("group", **page)
    told = [details for what, details in happened(app) if what == ["◆ Alert"]]
    assert told == ["escalated to ◆ page: losing data", "firing"]


@pytest.mark.parametrize(
    ("kind", "at", "behind", "marked"),
    [
        ("leaders_moved", _MOVED, True, ["orders; broker 1 → broker 2 (2), broker 3 (1); 3 of 6 partitions"]),
        ("leaders_moved", _MOVED, False, []),
        ("leaders_moved", ROSE, True, []),
        ("leaders_lost", _MOVED, True, []),
        ("hot_partition", ROSE, True, [_CAUSE]),
        ("waiting_rose", NOW - timedelta(minutes=50), True, [_CAUSE]),
        ("produce_rate_rose", ROSE, True, [_CAUSE]),
        ("hot_partition", NOW - timedelta(hours=2), True, []),
        ("of_a_newer_version", ROSE, True, []),
        ("already_behind", ROSE, True, []),
    ],
)
def test_the_likely_cause_is_the_event_or_shift_that_is_named(
    open_app: Open, busy: Path, kind: str, at: datetime, behind: bool, marked: list[str]
) -> None:
    """A change that was measured and is no shift on this page is a row of its own."""
    append(Lake(str(busy / "lake")), SERVICE_TIMES, list(measured()))
    move_leaders(busy)
    set_cause(busy, GROUP, is_in_sentence=True, kind=kind, at=at, behind=behind)
    assert causes(open_app("group", cluster="prod", group=GROUP)) == marked


def test_a_restart_that_is_the_cause_is_the_rebalance_that_it_began_with(open_app: Open, busy: Path) -> None:
    lake = Lake(str(busy / "lake"))
    began = min(e["at"] for e in lake.read(EVENTS).to_pylist() if e["group"] == GROUP)
    set_cause(busy, GROUP, is_in_sentence=True, kind="deployment", at=began)
    app = open_app("group", cluster="prod", group=GROUP)
    assert [number for number, (what, _) in enumerate(happened(app)) if "▶ likely cause" in what] == [2]


def test_leaders_that_were_lost_are_the_event_that_they_were_lost_with(open_app: Open, busy: Path) -> None:
    move_leaders(busy, "leaders_lost")
    set_cause(busy, GROUP, is_in_sentence=True, kind="leaders_were_lost", at=_MOVED)
    assert causes(open_app("group", cluster="prod", group=GROUP)) == [
        "orders; broker 1 → broker 2 (2), broker 3 (1); 3 of 6 partitions"
    ]


def test_the_list_is_filtered_by_kind_and_text_in_the_address(open_app: Open, busy: Path) -> None:
    move_leaders(busy, "leaders_lost")
    app = open_app("group", cluster="prod", group=GROUP)
    assert "4 events in the last 1 h." in [caption.value for caption in app.caption]
    app.pills(key="events_kind").set_value(["leaders", "status"]).run()
    assert set(app.query_params["events_kind"]) == {"status", "leaders"}
    assert [what[0] for what, _ in happened(app)] == ["⇅ Leaders lost", "◐ Status"]
    assert "2 events that match in the last 1 h." in [caption.value for caption in app.caption]
    app = open_app("group", cluster="prod", group=GROUP, events_q="broker 3")
    assert [what for what, _ in happened(app)] == [["⇅ Leaders lost"]]
    app = open_app("group", cluster="prod", group=GROUP, events_kind="offsets")
    assert "No event matches in the last 1 h." in [caption.value for caption in app.caption]


def test_the_csv_of_the_list_holds_values_and_not_only_words(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_leaders(busy)
    shown: dict[str, Any] = {}
    monkeypatch.setattr(grid, "show", lambda columns, name, **more: shown.update({name: more.get("all_rows")}))
    open_app("group", cluster="prod", group=GROUP)
    head, *rows = csv.DictReader(io.StringIO(as_csv(shown["events"]())))
    assert (head["at"], head["class"], head["kind"]) == ("2026-11-21T11:35:05Z", "leaders", "leaders_moved")
    assert head["what"] == "Leaders moved"
    assert (head["topic"], head["before"], head["is_likely_cause"]) == ("orders", "broker 1", "False")
    [status] = [one for one in rows if one["class"] == "status"]
    assert (status["before"], status["after"], status["lasted_seconds"]) == ("ok", "falling_behind", "1900.0")
    assert status["lasted_seconds_is_lower_bound"] == "True"


@pytest.mark.parametrize(("span", "is_said"), [("24h", True), ("15m", False)])
def test_charts_of_a_span_that_nobody_judged_at_first_say_when_they_begin(
    open_app: Open, busy: Path, span: str, is_said: bool
) -> None:
    """As of a group whose samples are older than the first round that judged it."""
    app = open_app("group", cluster="prod", group=GROUP, range=span)
    said = [caption.value for caption in app.caption if "no round of the analysis in this span judged" in caption.value]
    assert len(said) == is_said
