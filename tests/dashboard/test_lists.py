"""Lists that are longer than a page: all of their rows can be reached, counted, filtered and sorted."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from lagwise.links import pages, parameters
from lagwise.links.parameter_types import ListParameters
from lagwise.tables.store import Lake
from lagwise_alerts.outbox.database import ACTIONS, open_engine, transaction
from lagwise_dashboard import tables
from lagwise_dashboard.queries import capacity, group, overview, rebalances, retention, topic
from lagwise_dashboard.queries.listing import ALL_ROWS, PAGE_ROWS, ListPage, ListQuery, Orders
from tests.dashboard import long_lists
from tests.dashboard.conftest import NOW, Open, offered
from tests.dashboard.long_lists import CROWDED, MANY, STALLED, WIDE
from tests.dashboard.shown_tables import table
from tests.dashboard.test_views import _text

_PARTITIONS = 1_200
_LISTS: list[tuple[ListParameters, Orders]] = [
    (parameters.GROUP_LIST, overview.ORDERS),
    (parameters.PARTITION_LIST, group.PARTITION_ORDERS),
    (parameters.MEMBER_LIST, group.MEMBER_ORDERS),
    (parameters.READER_LIST, topic.READER_ORDERS),
    (parameters.TOPIC_PARTITION_LIST, topic.PARTITION_ORDERS),
    (parameters.LOSS_LIST, retention.ORDERS),
    (parameters.REBALANCED_LIST, rebalances.ORDERS),
    (parameters.HEADROOM_LIST, capacity.ORDERS),
    (parameters.UNDECIDED_LIST, capacity.ORDERS),
]


# Addresses


@pytest.mark.parametrize(("its", "orders"), _LISTS)
def test_an_address_has_the_orders_that_the_lake_has(its: ListParameters, orders: Orders) -> None:
    assert its.sort is not None
    assert its.sort.keys == tuple(orders)


@pytest.mark.usefixtures("planned")
def test_headings_ask_for_orders_that_the_lake_has(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "without_empty", lambda columns, *names: list(columns))
    checkout = {"cluster": "prod", "group": "checkout"}
    orders = {
        "groups": (open_app(), overview.ORDERS, 10),
        "partitions": (open_app("group", **checkout, tab="partitions"), group.PARTITION_ORDERS, 14),
        "members": (open_app("group", **checkout, tab="members"), group.MEMBER_ORDERS, 10),
        "readers": (open_app("topic", cluster="prod", topic="orders"), topic.READER_ORDERS, 11),
        "topic-partitions": (open_app("topic", cluster="prod", topic="orders"), topic.PARTITION_ORDERS, 9),
        "losses": (open_app("retention"), retention.ORDERS, 11),
        "rebalances": (open_app("rebalances"), rebalances.ORDERS, 9),
        "headroom": (open_app("capacity"), capacity.ORDERS, 8),
    }
    for name, (app, known, headings) in orders.items():
        asked = table(app, name).list_orders
        assert set(asked.values()) <= set(known), name
        assert len(asked) == headings, f"{name}: {sorted(asked)}"


def test_lists_start_again_where_what_decides_on_their_rows_has_changed() -> None:
    assert pages.GROUP.restarted([parameters.PARTITION_STATUS]) == (parameters.PARTITION_LIST.page,)
    assert parameters.MEMBER_LIST.search is not None
    assert pages.GROUP.restarted([parameters.MEMBER_LIST.search]) == (parameters.MEMBER_LIST.page,)
    assert set(pages.GROUP.restarted([parameters.RANGE])) == {
        its.page for its in (parameters.HOUR_LIST, parameters.EVENT_LIST)
    }
    assert pages.GROUP.restarted([parameters.EVENT_CLASS]) == (parameters.EVENT_LIST.page,)
    assert set(pages.OVERVIEW.restarted([parameters.STATUS])) == {
        parameters.GROUP_LIST.page,
        parameters.QUIET_LIST.page,
    }
    assert pages.GROUP.restarted([parameters.PARTITION_LIST.page]) == ()


def test_a_page_shows_its_row_range_and_the_total() -> None:
    rows = [{}] * PAGE_ROWS
    assert ListPage(rows, 10_000, ListQuery(page=2)).counted("partition") == "501–1,000 of 10,000 partitions"
    assert ListPage(rows[:3], 503, ListQuery(page=2)).counted("partition") == "501–503 of 503 partitions"
    assert ListPage(rows[:1], 1, ListQuery()).counted("partition") == "1 partition"
    assert ListPage(rows[:1], 1, ListQuery()).pages == ListPage([], 0, ListQuery()).pages == 1
    assert ListQuery(page=9).within(503).page == 2
    assert ListQuery(page=9).within(0).page == 1


# Pages


@pytest.fixture(scope="module")
def long_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose lists are all longer than a page: only to be copied."""
    folder = tmp_path_factory.mktemp("long")
    long_lists.write_to(folder, NOW, partitions=_PARTITIONS)
    return folder


@pytest.fixture
def long(tmp_path: Path, long_lake: Path) -> Lake:
    shutil.copytree(long_lake, tmp_path, dirs_exist_ok=True)
    return Lake(str(tmp_path / "lake"))


def _numbers(app: Any, name: str = "partitions") -> list[int]:
    return [int(shown) for shown in table(app, name)["Partition"]]


@pytest.mark.thorough
def test_every_partition_of_a_group_is_on_one_of_its_pages(open_app: Open, long: Lake) -> None:
    seen: list[int] = []
    for page, rows in ((1, "1–500"), (2, "501–1,000"), (3, "1,001–1,200")):
        app = open_app("group", cluster="prod", group=WIDE, tab="partitions", partitions_page=str(page))
        assert f"{rows} of 1,200 partitions of **wide**, worst first." in _text(app)
        seen += _numbers(app)
    assert sorted(seen) == list(range(_PARTITIONS))
    assert seen[0] == 42, "the worst of all"
    last = open_app("group", cluster="prod", group=WIDE, partitions_page="99")
    assert _numbers(last) == seen[1_000:], "beyond the last page lies the last"

    committed = {p["partition"]: p["committed"] for p in group.partitions(long, "prod", WIDE, ListQuery().all_rows)}
    app = open_app("group", cluster="prod", group=WIDE, partitions_sort="-committed", partitions_page="2")
    by_value = sorted(committed, key=lambda p: committed[p])
    assert _numbers(app) == by_value[500:1_000], "sorted over all rows, not over those of a page"
    assert "501–1,000 of 1,200 partitions of **wide**." in _text(app), "which are not the worst first"

    app = open_app("group", cluster="prod", group=WIDE, partitions_status="stalled", partitions_page="2")
    assert f"501–{STALLED} of {STALLED} partitions of **wide** that match, worst first." in _text(app)
    assert set(_numbers(app)) == {p for p in seen[500:] if (p - 42) % _PARTITIONS < STALLED}
    app.pagination(key="partitions_page").set_value(1).run()
    assert f"1–500 of {STALLED} partitions" in _text(app)
    assert "partitions_page" not in app.query_params
    app.pagination(key="partitions_page").set_value(2).run()
    assert app.query_params["partitions_page"] == "2"
    app.pills(key="partitions_status").set_value([]).run()
    assert "1–500 of 1,200 partitions of **wide**, worst first." in _text(app), "another filter, the first page"
    assert "partitions_page" not in app.query_params
    app = open_app("group", cluster="prod", group=WIDE, partitions_q="WIDE-1199")
    assert _numbers(app) == [1_199]
    app = open_app("group", cluster="prod", group=WIDE, partitions_q="no such owner")
    assert "No partition matches." in _text(app)
    app.text_input(key="partitions_q").set_value("wide-worker-3").run()
    assert "1–300 of" not in _text(app)
    assert "300 partitions of **wide** that match" in _text(app)


@pytest.mark.thorough
def test_what_is_typed_begins_at_the_first_page_whatever_the_browser_still_shows(open_app: Open, long: Lake) -> None:
    """Until a browser has heard of the first page, it reports the page that it shows."""

    def typed(text: str, *, page: int) -> None:
        app.text_input(key="q").set_value(text)
        app.pagination(key="page").set_value(page).run()

    app = open_app("overview", page="2")
    assert "101–200 of 602 groups." in _text(app)
    for text in ("g", "gr", "gro"):
        typed(text, page=2)
        assert "1–100 of 600 groups." in _text(app)
    typed("gro", page=3)
    assert "201–300 of 600 groups." in _text(app), "another page is a choice"
    assert app.query_params["page"] == "3"


@pytest.mark.thorough
def test_members_events_and_rebalances_of_a_group_come_in_pages(open_app: Open, long: Lake) -> None:
    app = open_app("group", cluster="prod", group=CROWDED, members_page="2", members_sort="id")
    assert "501–600 of 600 members" in _text(app)
    assert (
        table(app, "members")["Member id"]
        == sorted(m["member_id"] for m in group.members(long, "prod", CROWDED, NOW, ListQuery().all_rows))[500:]
    )
    app = open_app("group", cluster="prod", group=CROWDED, members_q="worker-17")
    assert "11 members that match" in _text(app), "17, and 170 to 179"
    app = open_app("group", cluster="prod", group=CROWDED, events_page="2")
    assert "501–600 of 600 events in the last 1 h." in _text(app)
    app = open_app("group", cluster="prod", group=CROWDED, events_q="no such cause")
    assert "No event matches in the last 1 h." in _text(app)
    app = open_app("rebalances", cluster="prod", group=CROWDED, rebalances_page="2")
    assert "501–600 of 600 rebalances, newest first." in _text(app)
    assert [(m.label, m.value) for m in app.metric][:2] == [("Rebalances", "600"), ("Downtime", "≤ 32 min")]


@pytest.mark.thorough
def test_a_topic_counts_all_of_its_partitions_on_each_page(open_app: Open, long: Lake) -> None:
    seen: list[int] = []
    for page in (1, 2, 3):
        app = open_app("topic", cluster="prod", topic="wide", topic_partitions_page=str(page))
        seen += _numbers(app, "topic-partitions")
        leaders = table(app, "leaders")
        assert sum(leaders.order["Leads"]) == _PARTITIONS  # type: ignore[arg-type]  # numbers, in these columns
        assert sum(leaders.order["Traffic"]) == pytest.approx(1)  # type: ignore[arg-type]  # numbers, in these columns
        assert next(m.value for m in app.metric if m.label == "Partitions") == r"1\,200"
    assert sorted(seen) == list(range(_PARTITIONS))
    app = open_app("topic", cluster="prod", topic="wide", topic_partitions_q="leader 2", topic_partitions_sort="number")
    assert "400 partitions that match" in _text(app)
    assert _numbers(app, "topic-partitions") == [p for p in range(_PARTITIONS) if p % 3 == 1]
    assert offered(open_app("topic", page="31"))[-2:] == ["topic\\-599 (prod) · 1 group", "wide (prod) · 1 group"]


@pytest.mark.thorough
def test_groups_and_losses_come_in_pages(open_app: Open, long: Lake) -> None:
    named = sorted([WIDE, CROWDED, *(f"group-{i:03d}" for i in range(MANY))])
    its_pages = [open_app(sort="name", page=str(page)) for page in range(1, 8)]
    assert "1–100 of 602 groups." in _text(its_pages[0])
    assert "601–602 of 602 groups." in _text(its_pages[-1])
    assert [name for one in its_pages for name in table(one, "groups")["Group"]] == named
    its_pages[1].text_input(key="q").set_value("group").run()
    assert "1–100 of 600 groups." in _text(its_pages[1]), "another filter begins at the first page"
    cards = open_app(**{"as": "cards"}, page="13")
    assert "601–602 of 602 groups." in _text(cards)
    app = open_app("retention", losses_page="2", losses_sort="-group")
    assert f"501–{MANY} of {MANY} rows" in _text(app)
    assert table(app, "losses")["Group"] == [f"group-{i:03d}" for i in range(99, -1, -1)]


@pytest.mark.thorough
def test_ended_alerts_deliveries_and_actions_come_in_pages(open_app: Open, long: Lake, tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'lagwise.db'}")
    did = {"who": "ada", "via": "cli", "action": "silence", "comment": ""}
    with transaction(engine) as connection:
        connection.execute(insert(ACTIONS), [did | {"at": NOW, "subject": f"number {i}"} for i in range(MANY)])
    engine.dispose()
    app = open_app("alerts", ended_page="2", deliveries_page="3", actions_page="2")
    text = _text(app)
    for rows in ("501–600 of 600 alerts", "1,001–1,202 of 1,202 messages", "501–600 of 600 actions"):
        assert f"{rows}, latest first." in text
    assert table(app, "deliveries")["About"][-1] == f"{WIDE} (prod)"
    assert all(re.fullmatch(r"(group-\d+|wide-reader) \(prod\)", about) for about in table(app, "deliveries")["About"])
    assert table(app, "actions")["Subject"][-1] == "number 0"
    app = open_app("alerts", ended_q="GROUP-59", deliveries_q="group-599", actions_q="%")
    assert [about.split()[0] for about in table(app, "ended-alerts")["About"]] == [f"group-59{i}" for i in range(10)]
    assert table(app, "deliveries")["Channel"] == ["team-chat", "on-call"]
    assert "No action matches." in _text(app), "a name is no pattern"


@pytest.mark.thorough
def test_the_whole_of_a_list_is_all_of_it(long: Lake) -> None:
    whole = group.partitions(long, "prod", WIDE, ListQuery("wide-", "-number", 3).all_rows)
    assert [p["partition"] for p in whole] == list(range(_PARTITIONS - 1, -1, -1))
    assert whole.query.page_rows == ALL_ROWS
