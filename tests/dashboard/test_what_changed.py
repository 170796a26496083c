"""The likely cause of a backlog on the group's page, and the time per message in its charts."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_dashboard.queries import time_per_message
from tests.dashboard.conftest import NOW, Open
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


def set_cause(folder: Path, group: str, *, is_in_sentence: bool) -> None:
    lake = Lake(str(folder / "lake"))
    rows = lake.read(GROUP_STATUS).to_pylist()
    for one in rows:
        if one["group"] == group:
            one |= {"what_changed": "waiting_rose", "what_changed_at": ROSE, "behind_since": ROSE}
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
    assert any("*What would help: Look at what the handlers call" in text for text in said) is is_in_sentence


def test_t1_and_t2_are_drawn_and_their_shift_is_marked(open_app: Open, busy: Path) -> None:
    append(Lake(str(busy / "lake")), SERVICE_TIMES, [*measured(), *measured()])
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert {"T1 (waiting)", "T2 (CPU)"} <= {trace.get("name") for trace in figure["data"]}
    titles = [note["text"] for note in figure["layout"]["annotations"]]
    assert "Time per message on orders" in titles
    (marks,) = [trace for trace in figure["data"] if trace.get("mode") == "markers"]
    [at] = [x for x, text in zip(marks["x"], marks["customdata"], strict=True) if text == "T1 12 ms → 48 ms"]
    assert abs(datetime.fromisoformat(at) - ROSE) <= timedelta(seconds=15)
    assert any("T1 12 ms → 48 ms at" in caption.value for caption in app.caption)


def test_without_a_probe_there_is_no_such_chart(open_app: Open, busy: Path) -> None:
    app = open_app("group", cluster="prod", group="orders-fulfilment")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
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
