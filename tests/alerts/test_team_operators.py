"""Operators of a team act on its groups alone, whatever they ask for, in a real database."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from lagwise.config.base import NameFilter
from lagwise.config.visibility import Visibilities, Visibility
from lagwise.platform.errors import OperatorError
from lagwise_alerts.notify.mute_state import Matcher, literal_pattern
from lagwise_alerts.operate import actions, queries, saved_views
from lagwise_alerts.operate.actions import Operator, Via
from lagwise_alerts.operate.resend import resend
from tests.alerts.support import CLUSTER, at
from tests.alerts.test_operate import happen

ROOT = Operator("root", Via.CLI)
SEES = Visibilities((Visibility(NameFilter(include=(CLUSTER,)), NameFilter(include=("orders.*",))),))
#: An operator of the team that has the groups orders… of the cluster.
JO = Operator("jo", Via.DASHBOARD, SEES)
SAM = Operator("sam", Via.DASHBOARD, SEES)


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(OperatorError) as error:
        work()
    return str(error.value)


def silence(engine: Engine, by: Operator, **patterns: str) -> int:
    its = Matcher(**patterns)
    return actions.silence(engine, its, starts_at=at(0), ends_at=at(600), comment="drill", by=by, now=at(0)).id


def test_they_acknowledge_alerts_about_their_groups(engine: Engine) -> None:
    happen(engine, 0, orders="stopped", billing="stopped")
    ids = {alert.subject.group: alert.incident_id for alert in queries.open_alerts(engine)}
    actions.acknowledge(engine, ids["orders"], comment="", by=JO, now=at(10))
    actions.take_back(engine, ids["orders"], by=JO, now=at(11))
    for act in (
        lambda one: actions.acknowledge(engine, one, comment="", by=JO, now=at(12)),
        lambda one: actions.take_back(engine, one, by=JO, now=at(12)),
    ):
        of_others = refused(lambda act=act: act(ids["billing"]))
        of_nobody = refused(lambda act=act: act("nothing"))
        assert of_others.replace(ids["billing"], "ID") == of_nobody.replace("nothing", "ID"), "it reads like unknown"
    assert {row.who for row in queries.actions(engine)} == {"jo"}
    assert len(queries.actions(engine)) == 2


@pytest.mark.parametrize("name", ["orders", "orders.eu", "orders(1)", "orders\\x", "orders\n+"])
def test_they_silence_one_of_their_groups(engine: Engine, name: str) -> None:
    happen(engine, 0, orders="ok")
    number = silence(engine, JO, cluster=CLUSTER, group=literal_pattern(name))
    [made] = queries.silences(engine, at(1))
    assert made.matcher.one_group == (CLUSTER, name)
    actions.unsilence(engine, number, by=JO, now=at(2))
    assert queries.silences(engine, at(3)) == []


@pytest.mark.parametrize(
    "patterns",
    [
        {"cluster": CLUSTER, "group": "billing"},
        {"cluster": "staging", "group": "orders"},
        {"cluster": CLUSTER, "group": "orders.*"},
        {"cluster": CLUSTER, "group": "orders|billing"},
        {"cluster": CLUSTER, "group": "orders[x]?"},
        {"cluster": CLUSTER, "group": r"orders\w"},
        {"cluster": f"{CLUSTER}|staging", "group": "orders"},
        {"group": "orders"},
        {"cluster": CLUSTER},
        {"severity": "page"},
    ],
)
def test_they_silence_nothing_else(engine: Engine, patterns: dict[str, str]) -> None:
    happen(engine, 0, orders="ok")
    assert "one of its groups at a time" in refused(lambda: silence(engine, JO, **patterns))
    number = silence(engine, ROOT, **patterns)
    assert "there is no silence" in refused(lambda: actions.unsilence(engine, number, by=JO, now=at(1)))
    assert [one.id for one in queries.silences(engine, at(2))] == [number], "nor end it"


def test_what_concerns_several_groups_is_for_operators_of_everything(engine: Engine) -> None:
    happen(engine, 0, orders="stopped")
    message = "it needs an operator of all groups"
    assert message in refused(lambda: resend(engine, None, by=JO, now=at(1)))
    assert message in refused(lambda: actions.record_test(engine, "ops", "ok", by=JO, now=at(1)))


def test_a_name_of_another_team_s_view_is_free_and_tells_nothing(engine: Engine) -> None:
    saved_views.save(engine, "Secret project", "overview", "q=orders", by=JO, now=at(0))
    theirs = saved_views.save(engine, "secret project", "overview", "", by=SAM, now=at(1))
    assert "already a saved view" in refused(
        lambda: saved_views.save(engine, theirs.name, "plan", "", by=SAM, now=at(2))
    )
    assert "already a saved view" in refused(
        lambda: saved_views.save(engine, theirs.name, "plan", "", by=ROOT, now=at(3))
    )


def test_they_change_their_own_views_alone(engine: Engine) -> None:
    happen(engine, 0, orders="ok")
    own = saved_views.save(engine, "mine", "overview", "q=orders", by=JO, now=at(0))
    saved_views.rename(engine, own.id, "still mine", by=JO, now=at(1))
    assert "has been deleted" in refused(lambda: saved_views.remove(engine, own.id, by=SAM, now=at(2)))
    saved_views.remove(engine, own.id, by=ROOT, now=at(3))


def test_only_what_is_about_some_groups_is_read(engine: Engine) -> None:
    happen(engine, 0, orders="stopped", billing="stopped", audit="stopped")
    for second in (15, 90, 165):
        happen(engine, second, orders="ok", billing="ok", audit="stopped")
    everything = {alert.subject.group for alert in queries.history(engine)}
    assert everything == {"orders", "billing"}
    among = ((CLUSTER, "orders"),)
    assert {alert.subject.group for alert in queries.history(engine, among=among)} == {"orders"}
    assert queries.count_history(engine, among=among) == 1
    assert queries.count_deliveries(engine, among=among) == len(queries.deliveries(engine, among=among)) > 0
    assert queries.count_deliveries(engine) > queries.count_deliveries(engine, among=among)
    assert queries.counts(engine, ((CLUSTER, "audit"),)).firing == 1
    assert queries.counts(engine, among).firing == 0
    assert queries.deliveries(engine, among=()) == [], "no group is nothing, and not all"
    assert set(queries.groups(engine)) == {(CLUSTER, "orders"), (CLUSTER, "billing"), (CLUSTER, "audit")}
