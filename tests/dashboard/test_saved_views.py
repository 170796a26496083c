"""Saved views on the pages: who may change them, and that the palette finds them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lagwise.config.operating import Role
from lagwise.config.visibility import EVERYTHING
from lagwise_alerts.operate import Operator, Via, queries, saved_views
from lagwise_alerts.outbox.database import open_engine
from lagwise_dashboard.identity import Person
from tests.dashboard.conftest import NOW
from tests.dashboard.shown_tables import table

pytestmark = pytest.mark.thorough

Open = Callable[..., Any]


def _be(monkeypatch: pytest.MonkeyPatch, role: Role) -> None:
    monkeypatch.setattr(
        "lagwise_dashboard.identity.local",
        lambda *_: Person("jo", role, signed_in=False, advice="ask", acts_on=EVERYTHING),
    )


def _save(folder: Path, name: str, page: str, query: str) -> None:
    engine = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    saved_views.save(engine, name, page, query, by=Operator("ada", Via.DASHBOARD), now=NOW)
    engine.dispose()


def _stored(folder: Path) -> list[tuple[str, str, str]]:
    engine = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    stored = [(view.name, view.page, view.query) for view in queries.saved_views(engine)]
    engine.dispose()
    return stored


def test_an_operator_saves_what_the_page_shows_renames_and_deletes_it(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _be(monkeypatch, Role.OPERATOR)
    app = open_app("overview", q="a&b", status=["stopped", "stalled"], nonsense="x")
    app.button(key="saved_views").click().run()
    assert "No view has been saved yet" in "".join(one.value for one in app.caption)
    app.text_input(key="saved_views_name_0").input("mine")
    app.button(key="saved_views_save").click().run()
    assert not app.exception
    assert _stored(busy) == [("mine", "overview", "q=a%26b&status=stopped&status=stalled")]
    app.button(key="saved_views").click().run()
    assert table(app, "saved_views")["View"] == ["mine"]
    assert table(app, "saved_views")["Saved by"] == ["jo"]
    [view] = app.selectbox(key="saved_views_chosen_1").options
    app.selectbox(key="saved_views_chosen_1").select(view)
    app.text_input(key="saved_views_new_name_1").input("ours")
    app.button(key="saved_views_rename").click().run()
    assert [name for name, *_ in _stored(busy)] == ["ours"]
    app.button(key="saved_views").click().run()
    app.selectbox(key="saved_views_chosen_2").select("ours")
    app.button(key="saved_views_delete").click().run()
    assert _stored(busy) == []


def test_a_viewer_sees_the_views_and_changes_none(open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _save(busy, "team", "group", "cluster=prod&group=checkout")
    _be(monkeypatch, Role.VIEWER)
    app = open_app("overview")
    app.button(key="saved_views").click().run()
    assert table(app, "saved_views")["View"] == ["team"]
    assert "Saving a view needs the role operator: ask" in "".join(one.value for one in app.caption)
    assert not [one for one in app.button if one.label in ("Save", "Rename", "Delete")]


def test_a_viewer_whose_form_is_still_open_changes_nothing(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _be(monkeypatch, Role.OPERATOR)
    app = open_app("overview")
    app.button(key="saved_views").click().run()
    _be(monkeypatch, Role.VIEWER)
    app.text_input(key="saved_views_name_0").input("mine")
    app.button(key="saved_views_save").click().run()
    assert _stored(busy) == []
    assert not app.exception


def test_a_view_of_a_page_that_there_is_not_is_left_out(
    open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _save(busy, "evil", "javascript:alert(1)", "")
    _save(busy, "fine", "health", "")
    _be(monkeypatch, Role.OPERATOR)
    app = open_app("overview")
    app.button(key="saved_views").click().run()
    shown = table(app, "saved_views")
    assert shown["View"] == ["fine"]
