"""The SQL by itself: what it answers, over spans, gaps, days and names that try to be SQL."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import pytest

from lagwise.domain.vocabulary import EventClass
from lagwise.platform.errors import LakeError
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.data_files import DataFile
from lagwise.tables.raw import EVENTS
from lagwise.tables.store import Lake
from lagwise_dashboard.pages.group import group_charts
from lagwise_dashboard.pages.group.group_charts import ChartMark
from lagwise_dashboard.queries import base, event_log, group, health, overview
from lagwise_dashboard.queries.listing import ListQuery
from lagwise_dashboard.queries.overview import GroupFilters
from tests.dashboard import lakes
from tests.dashboard.lakes import INTERVAL, Scene
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, HOSTILE_NAMES

pytestmark = pytest.mark.thorough

#: Shortly after midnight, so that every span of an hour reaches into the day before.
NOW = datetime(2026, 11, 21, 0, 20, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(NOW, hours=3.0)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, scene: Scene) -> Lake:
    return lakes.write_to(tmp_path_factory.mktemp("queries"), scene)


def test_the_counts_are_those_of_the_stories(stored: Lake) -> None:
    counts = overview.counts(stored, None, "")
    assert counts.total == len(GROUPS_OF_THE_DEMO)
    assert counts.by_status["stopped"] == 2
    assert overview.counts(stored, "staging", "").by_status == {"stopped": 1, "ok": 1}
    assert overview.counts(stored, None, "CLICK").by_status == {"at_risk": 1}


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "' or 1=1 --", "%", "_", "\\"])
def test_a_search_is_never_sql_and_never_a_pattern(stored: Lake, name: str) -> None:
    assert overview.counts(stored, None, name).total in (0, len([s for s in GROUPS_OF_THE_DEMO if name in s.topic]))
    assert not overview.groups(stored, GroupFilters(), ListQuery(name), quiet=None)
    assert group.verdict(stored, name, name) is None
    assert not group.partitions(stored, name, name)
    assert not group.partitions(stored, "prod", "orders-fulfilment", ListQuery(name))


def test_quiet_and_other_groups_are_all_groups(stored: Lake) -> None:
    both = {(r["cluster"], r["group"]) for r in overview.groups(stored, GroupFilters(), quiet=None)}
    loud = {(r["cluster"], r["group"]) for r in overview.groups(stored, GroupFilters(), quiet=False)}
    quiet = {(r["cluster"], r["group"]) for r in overview.groups(stored, GroupFilters(), quiet=True)}
    assert loud | quiet == both
    assert not loud & quiet
    assert ("prod", "console-consumer-41275") in quiet
    assert ("prod", "feature-flags-audit") in loud, "unknown with members is not quiet"


@pytest.mark.parametrize("order", overview.ORDERS)
def test_every_order_gives_every_row(stored: Lake, order: str) -> None:
    assert len(overview.groups(stored, GroupFilters(), ListQuery(order=order), quiet=None)) == len(GROUPS_OF_THE_DEMO)


def test_an_order_that_does_not_exist_is_the_default(stored: Lake) -> None:
    assert overview.groups(stored, GroupFilters(), ListQuery(order="; drop"), quiet=None).rows == (
        overview.groups(stored, GroupFilters(), quiet=None).rows
    )


def test_a_trend_reaches_across_midnight(stored: Lake) -> None:
    rows = overview.groups(stored, GroupFilters(), ListQuery("checkout"), quiet=None)
    assert 30 <= len(rows[0]["trend"]) <= overview.TREND_POINTS + 1


@pytest.mark.parametrize("hours", [0.25, 1.0, 3.0, 24.0, 168.0])
def test_a_line_has_at_most_400_points(stored: Lake, scene: Scene, hours: float) -> None:
    since = NOW - timedelta(hours=hours)
    found = group.history(stored, "prod", "orders-fulfilment", since, NOW)
    assert found.num_rows == pytest.approx(min(hours, 3.0) * 240, abs=2) or hours > 2
    assert 0 < found.num_rows <= base.MAX_POINTS
    times = found["at"].to_pylist()
    assert times == sorted(times)
    assert min(times) >= since


def test_buckets_keep_the_peak_and_the_worst_status(tmp_path: Path) -> None:
    lake = lakes.write_to(tmp_path, Scene(NOW, stories=()))
    rows = [
        {
            "cluster": "c",
            "group": "g",
            "as_of": NOW - timedelta(seconds=s),
            "status": status,
            "lag_seconds": age,
            "lag": 1,
        }
        for s, status, age in ((30, "ok", 1.0), (20, "stalled", 99.0), (10, "unknown", None))
    ]
    lakes.append(lake, GROUP_HISTORY, rows)
    wide = group.history(lake, "c", "g", NOW - timedelta(days=30), NOW)
    assert wide.num_rows == 1
    row = wide.to_pylist()[0]
    assert (row["status"], row["lag_seconds"]) == ("stalled", 99.0)
    assert row["produce_rate_per_second"] is None, "unknown stays unknown"


def test_the_members_are_those_of_the_newest_sample(stored: Lake, scene: Scene) -> None:
    found = group.members(stored, "prod", "fraud-scoring", scene.as_of)
    assert [m["client_id"] for m in found] == [f"transactions-worker-{i}" for i in range(4)]
    assert {m["sampled_at"] for m in found} == {scene.as_of}
    assert not group.members(stored, "prod", "invoice-mailer", scene.as_of)


def test_all_that_happened_to_a_group_in_one_order_of_time(stored: Lake) -> None:
    scope = event_log.Scope("prod", "orders-fulfilment", ("orders",), NOW - HOUR, NOW)
    found = event_log.events(stored, scope)
    assert [e["event_class"] for e in found] == ["status", "rebalance", "rebalance"]
    assert [e["at"] for e in found] == sorted((e["at"] for e in found), reverse=True)
    assert not event_log.events(stored, scope._replace(since=NOW - timedelta(seconds=60)))


def test_events_of_topics_alerts_and_shifts_stand_among_those_of_the_group(tmp_path: Path) -> None:
    lake = lakes.write_to(tmp_path, Scene(NOW, stories=()))

    def at(minutes: float) -> datetime:
        return NOW - timedelta(minutes=minutes)

    own = {"cluster": "c", "group": "g"}
    changes = [{**own, "at": at(m), "before": "ok", "after": word} for m, word in ((50, "lagging"), (20, "stalled"))]
    lakes.append(lake, STATUS_CHANGES, changes)
    moved = {"cluster": "c", "topic": "t", "at": at(40), "kind": "leaders_moved", "before": "broker 1"}
    new_kind = {"cluster": "c", "topic": "t", "at": at(35), "kind": "disk_full"}
    elsewhere = [{**moved, "topic": "u"}, {**moved, "cluster": "d"}, {**moved, "at": at(70)}]
    gone = {**own, "topic": "t", "partition": 12, "at": at(30), "kind": "offsets_gone"}
    lakes.append(lake, EVENTS, [moved, moved, *elsewhere, new_kind, gone])
    noted = (
        event_log.Noted(at(25), EventClass.ALERT, "Alert page"),
        event_log.Noted(at(45), EventClass.LEVEL, "T1 rose_a lot", is_cause=True),
    )
    scope = event_log.Scope("c", "g", ("t",), NOW - HOUR, NOW)

    def classes(*args: Any) -> list[str]:
        return [e["event_class"] for e in event_log.events(lake, scope, noted, *args)]

    in_order = ["status", "alert", "offsets", "topic", "leaders", "level", "status"]
    assert classes() == in_order, "a kind that only a newer version knows is of the topic; the same event once"
    assert [e["is_cause"] for e in event_log.events(lake, scope, noted)].index(True) == 5
    assert classes(ListQuery(), ("status", "leaders")) == ["status", "leaders", "status"]
    assert classes(ListQuery(page=2, page_rows=3)) == in_order[3:6]
    for text, found in (
        ("T-12", "offsets"),
        ("leaders moved", "leaders"),
        ("rose a LOT", "level"),
        ("PAGE", "alert"),
        ("commits gone", "offsets"),
    ):
        assert classes(ListQuery(text)) == [found], text
    [lagging] = event_log.events(lake, scope, noted, ListQuery("lagging"))
    assert lagging["until_at"] == at(20), "how long it lasted does not depend on what is looked for"
    [lagging] = event_log.events(lake, scope._replace(until=at(45)), (), ListQuery("lagging"))
    assert lagging["until_at"] == at(20), "nor on what is looked at"
    assert event_log.counts(lake, scope, noted) == {word: in_order.count(word) for word in in_order}
    assert event_log.counts(lake, scope._replace(cluster="x")) == {}


def test_the_newest_sample_is_found_however_old_it_is(stored: Lake, scene: Scene) -> None:
    for later in (timedelta(), timedelta(days=40)):
        day = (NOW + later).replace(hour=0, minute=0, second=0)
        newest = health.newest(stored, day)
        assert [s["cluster"] for s in newest.samples] == ["prod", "staging"]
        assert {s["finished_at"] for s in newest.samples} == {scene.as_of}
        assert newest.tick is not None
        assert newest.as_of == {"prod": scene.as_of, "staging": scene.as_of}


def test_errors_are_added_up_by_kind(tmp_path: Path) -> None:
    errors = {"prod": [{"kind": "timeout", "count": 2, "example": "x"}, {"kind": "other", "count": 1, "example": "y"}]}
    scene = Scene(NOW, errors=errors, hours=1.0)
    lake = lakes.write_to(tmp_path, scene)
    found = {e["kind"]: e for e in health.errors(lake, NOW - 2 * HOUR, NOW)}
    runs = len(scene.times) // 4 + 1
    assert (found["timeout"]["count"], found["timeout"]["runs"]) == (2 * runs, runs)
    assert found["other"]["count"] == runs


def test_a_table_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "nowhere"))
    assert not overview.groups(lake, GroupFilters(), quiet=None)
    assert overview.counts(lake, None, "").total == 0
    assert health.newest(lake, NOW) == health.Newest((), None, None, {}, None)
    assert all(s["bytes"] is None for s in health.sizes(lake))


def test_a_file_replaced_between_listing_and_reading_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the analysis does every few seconds: the state is rewritten, and the old file is vacuumed."""
    lake = lakes.write_to(tmp_path, Scene(NOW))
    listed = Lake._files
    calls = []

    def stale_once(self: Lake, *args: object, **kwargs: object) -> list[DataFile]:
        calls.append(1)
        found = listed(self, *args, **kwargs)  # type: ignore[arg-type]  # passed on as it came
        return [replace(f, path=f.path.replace("part-", "gone-")) for f in found] if len(calls) == 1 else found

    monkeypatch.setattr(Lake, "_files", stale_once)
    assert overview.counts(lake, None, "").total == len(GROUPS_OF_THE_DEMO)
    assert len(calls) == 2


def test_a_file_that_stays_away_is_a_clear_error(tmp_path: Path) -> None:
    lake = lakes.write_to(tmp_path, Scene(NOW))
    for file in Path(lake.location(GROUP_STATUS)).glob("*.parquet"):
        file.unlink()
    with pytest.raises(LakeError, match="analysis/group_status") as raised:
        overview.counts(lake, None, "")
    assert "\n" not in str(raised.value)


def test_a_gap_in_the_history_is_a_gap_in_the_line(tmp_path: Path) -> None:
    lake = lakes.write_to(tmp_path, Scene(NOW, stories=()))
    minutes = [m for m in range(60) if not 20 <= m < 40]
    lakes.append(
        lake,
        GROUP_HISTORY,
        [
            {
                "cluster": "c",
                "group": "g",
                "as_of": NOW - timedelta(minutes=m),
                "status": "ok",
                "lag_seconds": 1.0,
                "lag": 1,
            }
            for m in minutes
        ],
    )
    found = group.history(lake, "c", "g", NOW - HOUR, NOW)
    made = _checked_chart(found, [], NOW - HOUR, NOW, objective_seconds=300, work=None, before=None, zoom="z")
    line = next(t for t in made.data if t.name == "age")
    line_at = dict(zip(line.x, line.y, strict=True))
    areas = [t for t in made.data if t.type == "scatter" and t.fill == "tozeroy"]
    gap = [at for at, age in line_at.items() if age is None]
    assert gap == [NOW - timedelta(minutes=39), NOW - timedelta(minutes=20)]
    assert [(min(a.x), max(a.x)) for a in areas] == [
        (min(line_at), NOW - timedelta(minutes=40)),
        (NOW - timedelta(minutes=19), NOW),
    ], "each ends where its part of the line does"
    assert [at for a in areas for at in a.x] == [at for at, age in line_at.items() if age is not None]
    assert {age for a in areas for age in a.y} == {1.0}
    bands = [t for t in made.data if t.type == "scatter" and t.fill == "toself"]
    (drawn,) = [t for t in made.data if t.type == "bar"]
    assert len(bands) == len(drawn.base) == 2, "the status is not claimed for a time nobody looked at"


def test_an_age_that_is_a_lower_bound_is_drawn_as_one() -> None:
    ages = [(10.0, False), (20.0, False), (30.0, True), (40.0, True), (50.0, False)]
    history = pa.table(
        {
            "at": [NOW - timedelta(minutes=9 - n) for n in range(len(ages))],
            "lag_seconds": [age for age, _ in ages],
            "lag_seconds_is_lower_bound": [is_bound for _, is_bound in ages],
            "lag": [1_000] * len(ages),
            "produce_rate_per_second": [1.0] * len(ages),
            "consume_rate_per_second": [1.0] * len(ages),
            "status": ["stopped"] * len(ages),
        }
    )
    made = _checked_chart(history, [], NOW - HOUR, NOW, objective_seconds=None, work=None, before=None, zoom="z")
    known, bound = (next(t for t in made.data if t.name == name) for name in ("age", "age, at least"))
    assert (known.line.dash, bound.line.dash, bound.showlegend) == ("solid", "dot", True)
    assert list(known.y) == [10.0, 20.0, None, None, 50.0]
    assert list(bound.y) == [None, 20.0, 30.0, 40.0, 50.0], "up to its neighbours, so that the line is not broken"
    assert "lower bound" in bound.hovertemplate
    assert bound.customdata[2] == "≥ 30 s, stopped"


def test_an_age_without_a_gap_is_one_line_with_its_area() -> None:
    history = pa.table(
        {
            "at": [NOW - timedelta(minutes=9 - n) for n in range(5)],
            "lag_seconds": [10.0 + n for n in range(5)],
            "lag_seconds_is_lower_bound": [False] * 5,
            "lag": [1_000] * 5,
            "produce_rate_per_second": [1.0] * 5,
            "consume_rate_per_second": [1.0] * 5,
            "status": ["ok"] * 5,
        }
    )
    made = _checked_chart(history, [], NOW - HOUR, NOW, objective_seconds=None, work=None, before=None, zoom="z")
    assert [t.name for t in made.data if t.type == "scatter" and t.fill == "tozeroy"] == ["age"]


def test_without_a_lower_bound_the_legend_does_not_speak_of_one() -> None:
    made = _checked_chart(no_history(), [], NOW - HOUR, NOW, objective_seconds=None, work=None, before=None, zoom="z")
    assert "age, at least" not in [t.name for t in made.data]


def _checked_chart(*args: Any, **kwargs: Any) -> go.Figure:
    """The chart, all of whose properties and values Plotly knows."""
    return go.Figure(group_charts.chart(*args, **kwargs))


def no_history() -> pa.Table:
    history = GROUP_HISTORY.from_rows([]).select(["as_of", "lag_seconds", "lag_seconds_is_lower_bound", "lag"])
    history = history.rename_columns(["at", *history.column_names[1:]])
    for name in ("produce_rate_per_second", "consume_rate_per_second", "status"):
        history = history.append_column(name, [[]])
    return history


def test_marks_are_text_and_not_markup() -> None:
    mark = ChartMark(NOW - INTERVAL, "left: <img src=x onerror=alert(1)>")
    made = _checked_chart(
        no_history(),
        [mark] * 300,
        NOW - HOUR,
        NOW,
        objective_seconds=None,
        work=None,
        before=None,
        zoom="z",
    )
    (marks,) = [t for t in made.data if t.type == "scatter" and t.mode == "markers"]
    assert len(marks.x) == len(marks.customdata) == group_charts.MAX_MARKS
    assert not any("<img" in text for text in marks.customdata)


def test_charts_without_data_are_labelled_unknown() -> None:
    made = _checked_chart(no_history(), [], NOW - HOUR, NOW, objective_seconds=None, work=None, before=None, zoom="z")
    said = [a for a in made.layout.annotations if a.text == "unknown"]
    assert [a.yref for a in said] == ["y2 domain", "y3 domain", "y4 domain"]
    assert made.layout.yaxis2.showticklabels is False


@pytest.mark.parametrize(("events", "changes", "lines"), [(11, 1, 12), (12, 1, 1), (100, 3, 3), (0, 20, 12)])
def test_where_much_happened_only_the_weighty_is_drawn_as_a_line(events: int, changes: int, lines: int) -> None:
    marks = [ChartMark(NOW - i * INTERVAL, "rebalance") for i in range(events)]
    marks += [ChartMark(NOW - i * INTERVAL, "stopped", dash="solid", minor=False) for i in range(changes)]
    marks.sort(key=lambda mark: mark.at, reverse=True)
    made = _checked_chart(
        no_history(), marks, NOW - HOUR, NOW, objective_seconds=None, work=None, before=None, zoom="z"
    )
    assert len(made.layout.shapes) == 3 * lines, "across all charts"
    (drawn,) = [t for t in made.data if t.type == "scatter" and t.mode == "markers"]
    assert len(drawn.x) == len(marks), "every one can be pointed at"
