"""What an operator does from the page, in the real database; and that a viewer cannot."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from lagwise.config.operating import Role
from lagwise.config.visibility import EVERYTHING
from lagwise_alerts.notify.mute_state import Matcher
from lagwise_alerts.operate import actions, queries
from lagwise_alerts.operate.actions import Operator, Via
from lagwise_alerts.outbox.database import open_engine
from lagwise_dashboard.escaping import visible
from lagwise_dashboard.identity import Person
from tests.dashboard import alerts
from tests.dashboard.conftest import NOW, offered
from tests.dashboard.serving import write_settings
from tests.dashboard.shown_tables import table, tables

pytestmark = pytest.mark.thorough

Open = Callable[..., Any]
JO = Operator("jo", Via.CLI)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def engine(busy: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    url = f"sqlite:///{busy / 'lagwise.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql")
        alerts.write_into(url, NOW)
        monkeypatch.setenv("LAGWISE_DATABASE", url)
    made = open_engine(url)
    yield made
    made.dispose()


def be(monkeypatch: pytest.MonkeyPatch, role: Role | None) -> None:
    monkeypatch.setattr(
        "lagwise_dashboard.identity.local", lambda *_: Person("jo", role, signed_in=False, acts_on=EVERYTHING)
    )


def titles(app: Any) -> list[str]:
    return [one.value for one in app.subheader]


def test_acknowledge_and_give_back(open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, Role.OPERATOR)
    app = open_app("alerts")
    chosen = app.multiselect(key="ack_ids").options[0]
    firing = [a for a in queries.open_alerts(engine) if a.fired_at]
    app.multiselect(key="ack_ids").select(firing[0].incident_id)
    app.text_input(key="ack_comment").input("on *it*")
    app.run()
    app.button(key="acknowledge_form_do").click().run()
    assert not app.exception
    assert "1 alert acknowledged" in app.toast[0].value
    assert titles(app)[:2] == ["Firing", "Acknowledged"]
    taken = table(app, "acknowledged")
    assert (taken["Acknowledged by"], taken["Since"], taken["Comment"]) == (["jo"], ["0 s ago"], ["on *it*"])
    assert taken["About"][0] in chosen
    [action] = queries.actions(engine)
    assert (action.who, action.via, action.action, action.comment) == ("jo", "dashboard", "acknowledge", "on *it*")
    app.multiselect(key="back_ids").select(firing[0].incident_id).run()
    app.button(key="take_back_form_do").click().run()
    assert "unacknowledged" in app.toast[0].value
    assert "Acknowledged" not in titles(app)


def test_a_group_is_acknowledged_and_silenced_on_its_own_page(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def firing_line() -> str:
        (line,) = [one for one in offered(app) if "firing for" in one]
        return line

    be(monkeypatch, Role.OPERATOR)
    cluster, group = "prod", "clickstream-archive"
    app, about = open_app("group", cluster=cluster, group=group), f"_{cluster}/{group}"
    assert "acknowledged" not in firing_line()
    app.text_input(key=f"ack_comment{about}").input("on it")
    app.button(key=f"acknowledge_form{about}_do").click().run()
    assert not app.exception
    assert firing_line().endswith(", acknowledged by jo")
    its = [a for a in queries.open_alerts(engine) if a.subject.group == group and a.fired_at]
    [action] = queries.actions(engine)
    assert (action.action, action.comment, len(its)) == ("acknowledge", "on it", 1)
    app.text_input(key=f"silence_comment{about}").input("deploy")
    app.button(key=f"silence_form{about}_do").click().run()
    silenced = r", silenced until 14\:00\:05 UTC"
    assert firing_line().endswith(f", acknowledged by jo{silenced}")
    app.button(key=f"take_back_form{about}_do").click().run()
    assert "acknowledged" not in firing_line()
    assert firing_line().endswith(silenced)
    [silence] = queries.silences(engine, NOW)
    assert (silence.matcher.cluster, silence.matcher.group, silence.comment) == (
        "prod",
        "clickstream-archive",
        "deploy",
    )


def test_a_silence_of_a_group_needs_a_reason(open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, Role.OPERATOR)
    app, about = open_app("group", cluster="prod", group="clickstream-archive"), "_prod/clickstream-archive"
    app.button(key=f"silence_form{about}_do").click().run()
    assert any("reason" in one.value for one in app.error)
    assert not queries.silences(engine, NOW)
    app.query_params["group"] = "orders-fulfilment"
    app.run()
    assert not any("reason" in one.value for one in app.error), "it is about another group"


def test_the_error_of_a_form_that_is_gone_is_still_shown(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, Role.OPERATOR)
    app, about = open_app("group", cluster="prod", group="clickstream-archive"), "_prod/clickstream-archive"
    be(monkeypatch, Role.VIEWER)
    app.button(key=f"acknowledge_form{about}_do").click().run()
    assert ["this needs the role operator" in one.value for one in app.error].count(True) == 1
    assert not queries.actions(engine)


def test_a_viewer_finds_no_forms_on_the_page_of_a_group(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, Role.VIEWER)
    app = open_app("group", cluster="prod", group="clickstream-archive")
    assert [one for one in offered(app) if "firing for" in one]
    assert not [one for one in app.button if "silence" in (one.key or "") or "acknowledge" in (one.key or "")]


def test_silence_like_an_alert_see_it_gone_and_end_it(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, Role.OPERATOR)
    app = open_app("alerts")
    firing = [a for a in queries.open_alerts(engine) if a.fired_at]
    before = table(app, "firing").rows
    app.selectbox(key="silence_like").select(firing[0].incident_id).run()
    assert app.text_input(key="silence_group").value == firing[0].subject.group
    app.text_input(key="silence_comment").input("deploy").run()
    app.button(key="silence_form_do").click().run()
    assert not app.exception
    assert app.toast[0].value.startswith("Silence 1 ")
    assert "Silenced" in titles(app)
    assert table(app, "firing").rows == before - 1
    [made] = queries.silences(engine, NOW)
    assert made.ends_at == NOW + timedelta(hours=2)
    assert (made.created_by, made.comment) == ("jo", "deploy")
    app.button(key="unsilence_form_do").click().run()
    assert "Silence 1 has ended" in app.toast[0].value
    assert queries.silences(engine, NOW + timedelta(seconds=1)) == []


def test_an_impossible_action_is_rejected_with_a_reason(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, Role.OPERATOR)
    app = open_app("alerts")
    app.text_input(key="silence_group").input("(").run()
    app.text_input(key="silence_comment").input("x").run()
    app.button(key="silence_form_do").click().run()
    assert not app.exception
    assert any("is not a regular expression" in one.value.replace("\\", "") for one in app.error)
    app.run()
    assert any("is not a regular expression" in one.value.replace("\\", "") for one in app.error), (
        "after a refresh, too"
    )
    assert not app.toast
    assert queries.silences(engine, NOW) == []
    app.text_input(key="silence_group").input("x").run()
    app.button(key="silence_form_do").click().run()
    assert len(app.error) == 1, "only that of the dead letters"
    assert app.text_input(key="silence_comment_1").value == "", "the next silence has a reason of its own"


def test_dead_letters_go_again(open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, Role.OPERATOR)
    app = open_app("alerts")
    [dead] = queries.deliveries(engine, state="dead")
    app.multiselect(key="resend_ids").select(dead.id).run()
    app.button(key="resend_form_do").click().run()
    assert "1 message queued again" in app.toast[0].value
    assert queries.deliveries(engine, state="dead") == []


def test_a_channel_is_tried_and_that_is_kept(open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    be(monkeypatch, Role.OPERATOR)
    app = open_app("alerts")
    app.button(key="try_form_do").click().run()
    assert any("did not accept it" in one.value for one in app.error), "nobody listens at that address"
    [action] = queries.actions(engine)
    assert (action.action, action.subject, action.who) == ("test", "channel on-call", "jo")
    assert "cannot connect" in action.comment


@pytest.mark.parametrize("role", [Role.VIEWER, None])
def test_who_may_not_act_has_no_buttons(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch, role: Role | None
) -> None:
    actions.silence(
        engine,
        Matcher(group="x"),
        starts_at=NOW,
        ends_at=NOW + timedelta(hours=1),
        comment="c",
        by=JO,
        now=NOW,
    )
    be(monkeypatch, role)
    app = open_app("alerts")
    if role is None:
        assert "has no access" in app.error[0].value
        assert not tables(app)
        return
    assert any("need the role operator" in one.value for one in app.caption)
    keys = {one.key for one in app.button}
    assert not keys & {"ack", "silence", "unsilence", "resend", "back"}


def test_a_role_that_is_taken_away_counts_at_once(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page was drawn for an operator; what he presses is done for a viewer no more."""
    be(monkeypatch, Role.OPERATOR)
    app = open_app("alerts")
    firing = [a for a in queries.open_alerts(engine) if a.fired_at]
    app.multiselect(key="ack_ids").select(firing[0].incident_id).run()
    be(monkeypatch, Role.VIEWER)
    app.button(key="acknowledge_form_do").click().run()
    assert any("needs the role operator" in one.value for one in app.error)
    assert queries.actions(engine) == []


def test_without_a_known_user_nothing_is_shown(open_app: Open, busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_settings(busy, sign_in={"auth_file": str(busy / "none.toml")})
    monkeypatch.setenv("LAGWISE_CONFIG", str(file))
    app = open_app()
    assert "there is no file" in app.error[0].value.replace("\\", "")
    assert not tables(app)
    assert not app.metric


def test_names_of_strangers_are_shown_as_they_are(
    open_app: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, Role.OPERATOR)
    hostile = ":red[x] <script>alert(1)</script> $a$"
    actions.silence(
        engine,
        Matcher(group=".*"),
        starts_at=NOW,
        ends_at=NOW + timedelta(hours=1),
        comment=hostile,
        by=Operator(hostile, Via.CLI),
        now=NOW,
    )
    app = open_app("alerts")
    assert table(app, "silences")["Reason"] == [visible(hostile)]
    assert titles(app)[:3] == ["Firing", "Silenced", "Pending"]
