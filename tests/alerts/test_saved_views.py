"""Saved views in a real database: saved, renamed and deleted, each recorded, and what makes no sense is refused."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from lagwise.platform.errors import OperatorError
from lagwise_alerts.operate import Operator, SavedView, Via, queries, saved_views
from lagwise_alerts.outbox.database import SAVED_VIEWS, create_tables, open_engine
from tests.alerts.support import at

JO = Operator("jo", Via.DASHBOARD)


def save(engine: Engine, name: str, query: str = "q=pay") -> SavedView:
    return saved_views.save(engine, name, "overview", query, by=JO, now=at(0))


def names(engine: Engine) -> list[str]:
    return [view.name for view in queries.saved_views(engine)]


def test_a_view_is_saved_renamed_and_deleted_and_each_is_recorded(engine: Engine) -> None:
    made = save(engine, "  payments ", "q=pay&status=stopped")
    assert made == SavedView(made.id, "payments", "overview", "q=pay&status=stopped", "jo", at(0))
    save(engine, "Billing")
    save(engine, "archive")
    assert names(engine) == ["archive", "Billing", "payments"]
    assert saved_views.rename(engine, made.id, "Payments", by=JO, now=at(5)).name == "Payments", (
        "its own name may change"
    )
    assert saved_views.remove(engine, made.id, by=JO, now=at(9)).query == "q=pay&status=stopped"
    assert names(engine) == ["archive", "Billing"]
    done = [(one.action, one.subject, one.comment, one.who) for one in queries.actions(engine)]
    assert done[:2] == [
        ("delete_view", "view Payments", "/overview?q=pay&status=stopped", "jo"),
        ("rename_view", "view payments", "now Payments", "jo"),
    ]
    assert [action for action, *_ in done[2:]] == ["save_view"] * 3


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "needs a name"),
        (" \t ", "needs a name"),
        ("a\nb", "invisible characters"),
        ("\u202eevil", "invisible characters"),
        ("x" * 81, "more than 80"),
        ("PAYMENTS", "already a saved view “payments”"),
    ],
)
def test_a_name_that_cannot_be_told_from_others_is_refused(engine: Engine, name: str, why: str) -> None:
    save(engine, "payments")
    other = save(engine, "other")
    with pytest.raises(OperatorError, match=why):
        save(engine, name)
    with pytest.raises(OperatorError, match=why):
        saved_views.rename(engine, other.id, name, by=JO, now=at(5))
    assert names(engine) == ["other", "payments"]
    assert len(queries.actions(engine)) == 2, "what was refused is not recorded"


@pytest.mark.parametrize("name", ["<b>x</b>", "'; drop table saved_views; --", "100 %_\\", "مجموعة", "\N{ROCKET} ops"])
def test_a_hostile_name_is_kept_as_it_is(engine: Engine, name: str) -> None:
    save(engine, name)
    assert names(engine) == [name]


def test_there_is_an_end_to_views_and_to_addresses(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 2)
    with pytest.raises(OperatorError, match="6,000 characters"):
        save(engine, "long", "q=" + "x" * saved_views.MAX_QUERY_LENGTH)
    save(engine, "one")
    save(engine, "two")
    with pytest.raises(OperatorError, match="there are 2 saved views"):
        save(engine, "three")


def test_what_was_deleted_meanwhile_is_said_to_be(engine: Engine) -> None:
    gone = save(engine, "gone")
    saved_views.remove(engine, gone.id, by=JO, now=at(1))
    assert save(engine, "next").id != gone.id, "a form that is still open never means another view"
    with pytest.raises(OperatorError, match="deleted meanwhile"):
        saved_views.remove(engine, gone.id, by=JO, now=at(2))
    with pytest.raises(OperatorError, match="deleted meanwhile"):
        saved_views.rename(engine, gone.id, "again", by=JO, now=at(2))


def test_a_database_from_before_has_none_and_gets_the_table_with_the_first(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'lagwise.db'}")
    assert names(engine) == [], "no alert process has ever run"
    create_tables(engine)
    SAVED_VIEWS.drop(engine)
    with engine.begin() as connection:
        connection.execute(text("drop table alembic_version"))
    assert names(engine) == []
    save(engine, "first")
    assert names(engine) == ["first"]
    engine.dispose()
