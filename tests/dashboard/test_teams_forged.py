"""What a page's socket is sent that no page would send: values of controls that name what their reader may not see.

The ids of controls are the same for everybody, so whoever has seen a page of an operator knows them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from streamlit.proto.WidgetStates_pb2 import WidgetState

from lagwise.links import pages
from lagwise_alerts.outbox.database import (
    ACKNOWLEDGEMENTS,
    ACTIONS,
    ALERTS,
    DELIVERIES,
    SAVED_VIEWS,
    SILENCES,
    open_engine,
)
from tests.dashboard import teams
from tests.dashboard.signed_in import connected_as
from tests.dashboard.teams import HIDDEN, MONEY, SHOP

pytestmark = pytest.mark.process

BOSS, ROOT, VIEWER, OPERATOR = ({"groups": [name]} for name in ("boss", "root", "money", "shop"))
#: The alert of the hidden group, as the form of an operator of everything names it.
_ITS_ALERT = f"◆ page {HIDDEN} (prod): stalled"
_TABLES = (ACKNOWLEDGEMENTS, ACTIONS, ALERTS, DELIVERIES, SAVED_VIEWS, SILENCES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("teams")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with teams.served_to_teams(folder) as found:
        yield found


def written(folder: Path) -> dict[str, list[object]]:
    """All that operators' actions change."""
    engine = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    with engine.connect() as connection:
        found: dict[str, list[object]] = {t.name: list(connection.execute(select(t)).all()) for t in _TABLES}
    engine.dispose()
    return found


def holding(id_: str, value: object) -> WidgetState:
    """A control that holds this: a text, a list of texts, or True, which is a button that was pressed."""
    if value is True:
        return WidgetState(id=id_, trigger_value=True)
    if isinstance(value, str):
        return WidgetState(id=id_, string_value=value)
    state = WidgetState(id=id_)
    state.string_array_value.data.extend(value)  # type: ignore[arg-type]  # a list of texts, as said above
    return state


def forged(
    claims: dict[str, list[str]],
    address: str,
    page: str,
    query: str,
    values: dict[str, object],
    controls: dict[str, str],
) -> str:
    """What the page sends after it was drawn and then told that its controls hold these values, by the ends of ids."""
    with connected_as(claims, address) as connection:
        connection.ask(page, query)
        known = controls | connection.controls
        states = [holding(id_, value) for end, value in values.items() for id_ in known if id_.endswith(end)]
        assert len(states) == len(values), "each control was found"
        return connection.ask(page, query, states)


def controls_of(claims: dict[str, list[str]], address: str, page: str, query: str = "") -> dict[str, str]:
    """The kinds of the controls that this reader's page has, by id."""
    with connected_as(claims, address) as connection:
        connection.ask(page, query)
        return connection.controls


OF_HIDDEN = f"cluster=prod&group={HIDDEN}"
ABOUT_HIDDEN = f"_prod/{HIDDEN}"
#: A page, its query, and what its controls are said to hold: acknowledge, silence in three ways, end a silence, send
#: again, test a channel.
ACTIONS_ON_HIDDEN = {
    "acknowledge": ("alerts", "", {"-ack_ids": [_ITS_ALERT], "-acknowledge_form_do": True}),
    "acknowledge_on_its_page": ("group", OF_HIDDEN, {f"-acknowledge_form{ABOUT_HIDDEN}_do": True}),
    "silence_by_name": (
        "alerts",
        "",
        {
            "-silence_group": HIDDEN,
            "-silence_cluster": "prod",
            "-silence_for": "1h",
            "-silence_comment": "forged",
            "-silence_form_do": True,
        },
    ),
    "silence_like_its_alert": (
        "alerts",
        "",
        {"-silence_like": _ITS_ALERT, "-silence_comment": "forged", "-silence_form_do": True},
    ),
    "silence_on_its_page": (
        "group",
        OF_HIDDEN,
        {f"-silence_comment{ABOUT_HIDDEN}": "forged", f"-silence_form{ABOUT_HIDDEN}_do": True},
    ),
    "end_its_silence": (
        "alerts",
        "",
        {"-unsilence_number": f"1: cluster prod, group {HIDDEN}", "-unsilence_form_do": True},
    ),
    "send_again": ("alerts", "", {"-resend_form_do": True}),
    "test_a_channel": ("alerts", "", {"-try_name": "on-call", "-try_form_do": True}),
}


@pytest.mark.parametrize("reader", [VIEWER, OPERATOR], ids=["viewer", "operator of another team"])
@pytest.mark.parametrize("name", ACTIONS_ON_HIDDEN)
def test_no_forged_action_changes_what_is_hidden(
    name: str, reader: dict[str, list[str]], address: str, folder: Path
) -> None:
    page, query, values = ACTIONS_ON_HIDDEN[name]
    before = written(folder)
    sent = forged(reader, address, page, query, values, controls_of(ROOT, address, page, query))
    assert written(folder) == before
    groups = MONEY if reader is VIEWER else SHOP
    assert {trace for trace in teams.traces_hidden_from(groups) - {HIDDEN} if trace in sent} == set()


def test_what_a_team_may_do_is_done_on_the_same_way(address: str, folder: Path) -> None:
    """So the refusals above are not those of a socket that says something else than a page would."""
    page, query, values = ACTIONS_ON_HIDDEN["silence_by_name"]
    before = written(folder)[SILENCES.name]
    sent = forged(OPERATOR, address, page, query, values | {"-silence_group": "checkout"}, {})
    assert "Silence 3" in sent
    assert len(written(folder)[SILENCES.name]) == len(before) + 1
    # The form that ends silences is drawn now: it holds the one of this team alone.
    page, query, values = ACTIONS_ON_HIDDEN["end_its_silence"]
    forged(OPERATOR, address, page, query, values, {})
    ended = written(folder)[SILENCES.name]
    assert ended[: len(before)] == before, "those of others go on"


#: By the kind of a control, what holds a hidden name.
FOREIGN: dict[str, object] = {"text_input": HIDDEN, "selectbox": f"{HIDDEN} (prod)", "multiselect": ["staging", HIDDEN]}


@pytest.mark.parametrize("page", [page.path for page in pages.PAGES])
def test_a_control_that_holds_a_hidden_name_shows_nothing_of_it(page: str, address: str) -> None:
    controls = controls_of(BOSS, address, page) | controls_of(VIEWER, address, page)
    typed = {id_: FOREIGN[kind] for id_, kind in controls.items() if kind in FOREIGN}
    query = f"{OF_HIDDEN}&cluster=staging&topic=transactions&owner=nobody&q={HIDDEN}"
    sent = forged(VIEWER, address, page, query, typed, controls)
    hidden = teams.traces_hidden_from(MONEY) - {HIDDEN, "staging", "transactions"}
    assert {trace for trace in hidden if trace in sent} == set()
