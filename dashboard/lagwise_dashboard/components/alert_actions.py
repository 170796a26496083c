"""What an operator does from the page: acknowledge, silence, end a silence, send again, try a channel.

Each acts on what its form showed, by the incidents' own names: a list that moved meanwhile cannot put another alert
under the button. What is typed is read when the button is pressed: the press itself is what ends the typing.
"""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta

import streamlit as st

from lagwise.alerts import operate, resend, trial
from lagwise.alerts.durations import parse_duration
from lagwise.alerts.model import Kind, Severity
from lagwise.alerts.muting import Matcher, Silence
from lagwise.alerts.operate import Operator, Via
from lagwise.alerts.queries import AlertRow, DeliveryRow
from lagwise.domain.humanise import plural
from lagwise.errors import LagwiseError, OperatorError
from lagwise.logs import clean
from lagwise_dashboard import alert_reader, identity, literal, settings
from lagwise_dashboard.components import alert_tables

#: What the last action came to: whether it worked, and in words.
_SAID = "alert_action_said"
_DURATIONS = ("30m", "1h", "2h", "4h", "8h", "1d", "3d", "7d")
_ANY = "any"
#: Fields of the form for a silence.
_CLUSTER, _GROUP, _KIND, _SEVERITY = "silence_cluster", "silence_group", "silence_kind", "silence_severity"
_LIKE, _FOR, _WHY = "silence_like", "silence_for", "silence_comment"
_ACK_COMMENT = "ack_comment"


def bar(firing: Sequence[AlertRow], taken: Sequence[AlertRow]) -> None:
    """What can be done about alerts; says so where this reader may not."""
    person = identity.current()
    _say_what_came_of_it()
    if person is None or not person.may_act:
        how = f": {person.advice}" if person is not None else ""
        st.caption(f"You can look. Acknowledging and silencing need the role operator{how}.")
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _acknowledge(firing)
        _take_back(taken)
        _silence([*firing, *taken])
        st.caption(f"You act as {literal.markdown(person.name)}. What is done is kept below.", width="content")


def end_silence(silences: Sequence[Silence]) -> None:
    """End one of the silences now."""
    if not silences or not _may_act():
        return
    with st.popover("End a silence", icon=":material/notifications_active:"):
        words = {one.id: f"{one.id}: {literal.shown(operate.matcher_words(one.matcher))}" for one in silences}
        number = st.selectbox("Silence", list(words), format_func=words.__getitem__, key="unsilence_number")
        st.caption("What it held back and still holds is told within seconds.")
        st.button("End it now", on_click=_do, args=(_unsilence, number), key="unsilence", type="primary")


def send_again(dead: Sequence[DeliveryRow], subjects: dict[str, str]) -> None:
    """Queue messages again that were given up."""
    if not dead or not _may_act():
        return
    with st.popover("Send again", icon=":material/forward_to_inbox:"):
        words = {row.id: f"{row.id}: {literal.shown(row.channel)}, {_about(row, subjects)}" for row in dead}
        ids = st.multiselect(
            "Messages that were given up", list(words), format_func=words.__getitem__, key="resend_ids"
        )
        st.caption("Each goes with the others of its incident, in order, unless a later one of them was delivered.")
        st.button(
            "Send again", on_click=_do, args=(_resend, tuple(ids)), disabled=not ids, key="resend", type="primary"
        )


def try_channel() -> None:
    """Send a test through a channel, and show the answer."""
    names = [channel.name for channel in settings.config().alerts.channels]
    if not names or not _may_act():
        return
    with st.popover("Test a channel", icon=":material/send:"):
        name = st.selectbox("Channel", names, key="try_name")
        over = st.checkbox("The end of the test", key="try_over", help="For receivers that keep what is open.")
        st.caption("It says that it is a test, is as urgent as an info, and goes out at once and once.")
        st.button("Send the test", on_click=_do, args=(_try, name, over), key="try", type="primary")


def _acknowledge(firing: Sequence[AlertRow]) -> None:
    with st.popover("Acknowledge", icon=":material/pan_tool:", disabled=not firing):
        words = {row.incident_id: _line(row) for row in firing}
        ids = st.multiselect("Alerts", list(words), format_func=words.__getitem__, key="ack_ids")
        st.text_input("What you do about it (optional)", key=_ACK_COMMENT, max_chars=500)
        st.caption("Nobody is told of it again, unless it becomes louder. Ends with the alert.")
        st.button(
            "I have it",
            on_click=_do,
            args=(_ack, tuple(ids)),
            disabled=not ids,
            key="ack",
            type="primary",
        )


def _take_back(taken: Sequence[AlertRow]) -> None:
    if not taken:
        return
    with st.popover("Give back", icon=":material/undo:"):
        words = {row.incident_id: _line(row) for row in taken}
        ids = st.multiselect("Alerts", list(words), format_func=words.__getitem__, key="back_ids")
        st.button(
            "I do not have it",
            on_click=_do,
            args=(_give_back, tuple(ids)),
            disabled=not ids,
            key="back",
            type="primary",
        )


def _silence(rows: Sequence[AlertRow]) -> None:
    with st.popover("Silence", icon=":material/notifications_off:"):
        words = {row.incident_id: _line(row) for row in rows}
        st.selectbox(
            "Like this alert",
            list(words),
            index=None,
            format_func=words.__getitem__,
            key=_LIKE,
            on_change=_fill,
            args=({row.incident_id: row for row in rows},),
            placeholder="or write patterns below",
        )
        st.text_input("Groups", key=_GROUP, help="A regular expression on the whole name; empty is any.")
        st.text_input("Clusters", key=_CLUSTER, help="Likewise.")
        st.multiselect("Kinds", [kind.value for kind in Kind], key=_KIND, placeholder=_ANY)
        st.multiselect("Severities", [s.value for s in Severity], key=_SEVERITY, placeholder=_ANY)
        st.selectbox("For", _DURATIONS, index=2, key=_FOR, accept_new_options=True)
        st.text_input("Why, for whoever wonders at night", key=_WHY, max_chars=500)
        st.button("Silence", on_click=_do, args=(_make_silence,), key="silence", type="primary")


def _fill(rows: dict[str, AlertRow]) -> None:
    """The patterns that mean this alert's subject and no other."""
    row = rows.get(st.session_state[_LIKE])
    if row is not None:
        st.session_state[_GROUP] = "" if row.group is None else re.escape(row.group)
        st.session_state[_CLUSTER] = "" if row.cluster is None else re.escape(row.cluster)
        st.session_state[_KIND] = [] if row.kind is Kind.GROUP else [row.kind.value]


def _do(work: Callable[..., str], *args: object) -> None:
    """Do it, if this reader may, and keep what came of it for the next drawing."""
    try:
        person = identity.current()
        if person is None or not person.may_act:
            raise OperatorError("this needs the role operator")
        said = work(Operator(person.name, Via.DASHBOARD), *args)
        st.session_state[_SAID] = (True, said)
    except LagwiseError as error:
        st.session_state[_SAID] = (False, clean(str(error)))
    alert_reader.forget()


def _say_what_came_of_it() -> None:
    said = st.session_state.pop(_SAID, None)
    if said is not None:
        worked, words = said
        show, icon = (st.success, ":material/check:") if worked else (st.error, ":material/error:")
        show(literal.markdown(words), icon=icon)


def _ack(by: Operator, ids: tuple[str, ...]) -> str:
    comment = st.session_state[_ACK_COMMENT]
    for incident_id in ids:
        operate.acknowledge(alert_reader.engine(), incident_id, comment=comment, by=by, now=settings.now())
    return f"{plural(len(ids), 'alert')} acknowledged."


def _give_back(by: Operator, ids: tuple[str, ...]) -> str:
    for incident_id in ids:
        operate.take_back(alert_reader.engine(), incident_id, by=by, now=settings.now())
    return f"{plural(len(ids), 'alert')} given back: what is new about them is told again."


def _make_silence(by: Operator) -> str:
    now, form = settings.now(), st.session_state
    matcher = Matcher(
        form[_CLUSTER] or None, form[_GROUP] or None, "|".join(form[_KIND]) or None, "|".join(form[_SEVERITY]) or None
    )
    try:
        ends_at = now + timedelta(seconds=parse_duration(form[_FOR]))
    except ValueError as error:
        raise OperatorError(str(error)) from None
    made = operate.silence(
        alert_reader.engine(), matcher, starts_at=now, ends_at=ends_at, comment=form[_WHY], by=by, now=now
    )
    return f"Silence {made.id} ({operate.matcher_words(matcher)}) until {made.ends_at:%Y-%m-%d %H:%M} UTC."


def _unsilence(by: Operator, number: int) -> str:
    operate.unsilence(alert_reader.engine(), number, by=by, now=settings.now())
    return f"Silence {number} has ended."


def _resend(by: Operator, ids: tuple[int, ...]) -> str:
    done = resend.resend(alert_reader.engine(), ids, by=by, now=settings.now())
    outdated = f"; {done.outdated} outdated and left" if done.outdated else ""
    return f"{plural(done.queued, 'message')} queued again{outdated}."


def _try(by: Operator, name: str, over: bool) -> str:
    answer = trial.send_test(settings.config(), name, settings.now, over=over)
    verdict = "took it" if answer.delivered else "did not take it"
    said = f"{name} ({answer.receiver}) {verdict}: {answer.answer or 'no answer'}"
    operate.record_test(alert_reader.engine(), name, said, by=by, now=settings.now())
    if not answer.delivered:
        raise OperatorError(said)
    return said


def _may_act() -> bool:
    person = identity.current()
    return person is not None and person.may_act


def _line(row: AlertRow) -> str:
    return f"{alert_tables.severity_words(row.severity)} {alert_tables.about(row)}: {literal.shown(row.status)}"


def _about(row: DeliveryRow, subjects: dict[str, str]) -> str:
    return f"{literal.shown(row.event)} of {subjects.get(row.incident_id) or literal.shown(row.incident_id)}"
