"""What an operator does from the page: acknowledge, silence, end a silence, send again, test a channel.

Each acts on what its form showed, by the incidents' own names: a list that moved meanwhile cannot put another alert
under the button. What is typed is read when the button is pressed: the press itself is what ends the typing.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

import streamlit as st

from lagwise.domain.humanise import plural
from lagwise.platform.durations import parse_duration
from lagwise.platform.errors import LagwiseError, OperatorError
from lagwise.platform.logs import clean
from lagwise_alerts.operate import (
    Alert,
    AlertKind,
    DeliveryRow,
    Matcher,
    Operator,
    Severity,
    Silence,
    Via,
    actions,
    literal_pattern,
    resend,
    test_message,
)
from lagwise_dashboard import alert_reader, context, escaping, identity
from lagwise_dashboard.widgets import alert_words

#: What actions came to, in words: those that worked, and by form the one that did not.
_DONE, _FAILED = "alert_actions_done", "alert_actions_failed"
#: What worked stays to be read for so long, whatever is refreshed meanwhile.
_READ_SECONDS = 8
_DURATIONS = ("30m", "1h", "2h", "4h", "8h", "1d", "3d", "7d")
_ANY = "any"
#: Fields of the form for a silence.
_CLUSTER, _GROUP, _KIND, _SEVERITY = "silence_cluster", "silence_group", "silence_kind", "silence_severity"
_LIKE, _FOR, _WHY = "silence_like", "silence_for", "silence_comment"
_ACK_COMMENT = "ack_comment"


@dataclass(frozen=True, slots=True)
class _Form:
    """A form behind a button. It stays open until what it asks for was done, or somebody closes it."""

    key: str
    label: str
    icon: str

    def open(self, *, disabled: bool = False) -> AbstractContextManager[object]:
        """The form, to draw fields and the button in."""
        return st.popover(
            self.label,
            icon=f":material/{self.icon}:",
            key=self.field(self.key),
            on_change=self.clear_error,
            disabled=disabled,
        )

    def button(self, label: str, work: Callable[..., str], *args: object, disabled: bool = False) -> None:
        """The button that does it, and below it why it was not done."""
        st.button(
            label,
            on_click=self.do,
            args=(work, *args),
            disabled=disabled,
            key=f"{self.key}_do",
            type="primary",
        )
        why = st.session_state.get(_FAILED, {}).get(self.key)
        if why:
            st.error(escaping.markdown(why), icon=":material/error:")

    def do(self, work: Callable[..., str], *args: object) -> None:
        """Do it, if this reader may, and keep what came of it for the next drawing."""
        self.clear_error()
        try:
            person = identity.current()
            if person is None or not person.may_act:
                raise OperatorError("this needs the role operator")
            st.session_state.setdefault(_DONE, []).append(work(Operator(person.name, Via.DASHBOARD), *args))
        except LagwiseError as error:
            st.session_state.setdefault(_FAILED, {})[self.key] = clean(str(error))
        else:
            st.session_state[f"{self.key}_done"] = self._times + 1
        alert_reader.clear_cache()

    def clear_error(self) -> None:
        """What went wrong before was read."""
        st.session_state.get(_FAILED, {}).pop(self.key, None)

    def field(self, name: str) -> str:
        """The key of a field, or of the form itself: a new one after each success.

        A new key closes and empties the form for certain. Setting the old keys would not: the browser may be asking for
        a refresh at that moment, and such a request says again that the form is open and what was typed.
        """
        return f"{name}_{self._times}" if self._times else name

    @property
    def _times(self) -> int:
        times: int = st.session_state.get(f"{self.key}_done", 0)
        return times


_ACKNOWLEDGE = _Form("acknowledge_form", "Acknowledge", "pan_tool")
_UNACKNOWLEDGE = _Form("take_back_form", "Unacknowledge", "undo")
_SILENCE = _Form("silence_form", "Silence", "notifications_off")
_UNSILENCE = _Form("unsilence_form", "End a silence", "notifications_active")
_RESEND = _Form("resend_form", "Send again", "forward_to_inbox")
_TEST = _Form("try_form", "Test a channel", "send")


def bar(firing: Sequence[Alert], acknowledged: Sequence[Alert]) -> None:
    """What can be done about alerts; says so where this reader may not."""
    person = identity.current()
    for done in st.session_state.pop(_DONE, []):
        st.toast(escaping.markdown(done), icon=":material/check:", duration=_READ_SECONDS)
    if person is None or not person.may_act:
        for why in st.session_state.pop(_FAILED, {}).values():
            st.error(escaping.markdown(why), icon=":material/error:")
        how = f": {person.advice}" if person is not None else ""
        st.caption(f"Read-only. Acknowledging and silencing need the role operator{how}.")
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _acknowledge_form(firing)
        _unacknowledge_form(acknowledged)
        _silence_form([*firing, *acknowledged])
        st.caption(f"You act as {escaping.markdown(person.name)}. Actions are recorded below.", width="content")


def end_silence(silences: Sequence[Silence]) -> None:
    """End one of the silences now."""
    if not silences or not _may_act():
        return
    with _UNSILENCE.open():
        words = {one.id: f"{one.id}: {escaping.visible(actions.matcher_words(one.matcher))}" for one in silences}
        number = st.selectbox("Silence", list(words), format_func=words.__getitem__, key="unsilence_number")
        st.caption("Alerts that it muted and that still fire are notified within seconds.")
        _UNSILENCE.button("End it now", _unsilence, number)


def send_again(dead: Sequence[DeliveryRow], subjects: dict[str, str]) -> None:
    """Queue undelivered messages again."""
    if not dead or not _may_act():
        return
    with _RESEND.open():
        words = {row.id: f"{row.id}: {escaping.visible(row.channel)}, {_about(row, subjects)}" for row in dead}
        ids = st.multiselect(
            "Undelivered messages (required)", list(words), format_func=words.__getitem__, key="resend_ids"
        )
        st.caption("Messages of an incident go in order. One that a later delivery has overtaken is not sent.")
        _RESEND.button("Send again", _resend, tuple(ids), disabled=not ids)


def test_channel() -> None:
    """Send a test through a channel, and show the answer."""
    names = [channel.name for channel in context.config().alerts.channels]
    if not names or not _may_act():
        return
    with _TEST.open():
        name = st.selectbox("Channel", names, key="try_name")
        over = st.checkbox("Send the resolution", key="try_over", help="For receivers that track open alerts.")
        st.caption("The message says that it is a test and has severity info. It is sent once, immediately.")
        _TEST.button("Send the test", _send_test, name, over)


def _acknowledge_form(firing: Sequence[Alert]) -> None:
    with _ACKNOWLEDGE.open(disabled=not firing):
        words = {row.incident_id: _line(row) for row in firing}
        ids = st.multiselect("Alerts (required)", list(words), format_func=words.__getitem__, key="ack_ids")
        st.text_input("Comment", key=_ACKNOWLEDGE.field(_ACK_COMMENT), max_chars=500)
        st.caption("Acknowledged alerts are not notified again unless they become more severe. Ends with the alert.")
        _ACKNOWLEDGE.button("Acknowledge", _acknowledge, tuple(ids), disabled=not ids)


def _unacknowledge_form(acknowledged: Sequence[Alert]) -> None:
    if not acknowledged:
        return
    with _UNACKNOWLEDGE.open():
        words = {row.incident_id: _line(row) for row in acknowledged}
        ids = st.multiselect("Alerts (required)", list(words), format_func=words.__getitem__, key="back_ids")
        _UNACKNOWLEDGE.button("Unacknowledge", _unacknowledge, tuple(ids), disabled=not ids)


def _silence_form(rows: Sequence[Alert]) -> None:
    with _SILENCE.open():
        words = {row.incident_id: _line(row) for row in rows}
        st.selectbox(
            "Like this alert",
            list(words),
            index=None,
            format_func=words.__getitem__,
            key=_SILENCE.field(_LIKE),
            on_change=_fill,
            args=({row.incident_id: row for row in rows},),
            placeholder="or enter patterns below",
        )
        st.caption("At least one of these four is required:")
        st.text_input(
            "Groups", key=_SILENCE.field(_GROUP), help="A regular expression on the whole name; empty is any."
        )
        st.text_input(
            "Clusters", key=_SILENCE.field(_CLUSTER), help="A regular expression on the whole name; empty is any."
        )
        st.multiselect("Kinds", [kind.value for kind in AlertKind], key=_SILENCE.field(_KIND), placeholder=_ANY)
        st.multiselect("Severities", [s.value for s in Severity], key=_SILENCE.field(_SEVERITY), placeholder=_ANY)
        st.selectbox("For (required)", _DURATIONS, index=2, key=_SILENCE.field(_FOR), accept_new_options=True)
        st.text_input(
            "Reason (required)",
            key=_SILENCE.field(_WHY),
            max_chars=500,
            placeholder="such as: deploy",
        )
        _SILENCE.button("Silence", _make_silence)


def _fill(rows: dict[str, Alert]) -> None:
    """The patterns that mean this alert's subject and no other."""
    row = rows.get(st.session_state[_SILENCE.field(_LIKE)])
    if row is not None:
        kind, cluster, group = row.subject.kind, row.subject.cluster, row.subject.group
        st.session_state[_SILENCE.field(_GROUP)] = "" if group is None else literal_pattern(group)
        st.session_state[_SILENCE.field(_CLUSTER)] = "" if cluster is None else literal_pattern(cluster)
        st.session_state[_SILENCE.field(_KIND)] = [] if kind is AlertKind.GROUP else [kind.value]


def _acknowledge(by: Operator, ids: tuple[str, ...]) -> str:
    comment = st.session_state[_ACKNOWLEDGE.field(_ACK_COMMENT)]
    for incident_id in ids:
        actions.acknowledge(alert_reader.engine(), incident_id, comment=comment, by=by, now=context.now())
    return f"{plural(len(ids), 'alert')} acknowledged."


def _unacknowledge(by: Operator, ids: tuple[str, ...]) -> str:
    for incident_id in ids:
        actions.take_back(alert_reader.engine(), incident_id, by=by, now=context.now())
    return f"{plural(len(ids), 'alert')} unacknowledged: their next changes are notified again."


def _make_silence(by: Operator) -> str:
    now = context.now()
    cluster, group, kinds, severities, length, comment = (
        st.session_state[_SILENCE.field(name)] for name in (_CLUSTER, _GROUP, _KIND, _SEVERITY, _FOR, _WHY)
    )
    matcher = Matcher(cluster or None, group or None, "|".join(kinds) or None, "|".join(severities) or None)
    try:
        ends_at = now + timedelta(seconds=parse_duration(length))
    except ValueError as error:
        raise OperatorError(str(error)) from None
    made = actions.silence(
        alert_reader.engine(), matcher, starts_at=now, ends_at=ends_at, comment=comment, by=by, now=now
    )
    return f"Silence {made.id} ({actions.matcher_words(matcher)}) until {made.ends_at:%Y-%m-%d %H:%M} UTC."


def _unsilence(by: Operator, number: int) -> str:
    actions.unsilence(alert_reader.engine(), number, by=by, now=context.now())
    return f"Silence {number} has ended."


def _resend(by: Operator, ids: tuple[int, ...]) -> str:
    done = resend.resend(alert_reader.engine(), ids, by=by, now=context.now())
    outdated = f"; {done.outdated} outdated and left" if done.outdated else ""
    return f"{plural(done.queued, 'message')} queued again{outdated}."


def _send_test(by: Operator, name: str, over: bool) -> str:
    answer = test_message.send_test(context.config(), name, context.now, over=over)
    verdict = "accepted it" if answer.delivered else "did not accept it"
    said = f"{name} ({answer.receiver}) {verdict}: {answer.answer or 'no answer'}"
    actions.record_test(alert_reader.engine(), name, said, by=by, now=context.now())
    if not answer.delivered:
        raise OperatorError(said)
    return said


def _may_act() -> bool:
    person = identity.current()
    return person is not None and person.may_act


def _line(row: Alert) -> str:
    return f"{alert_words.severity_label(row.severity)} {alert_words.about(row)}: {escaping.visible(row.status)}"


def _about(row: DeliveryRow, subjects: dict[str, str]) -> str:
    return f"{escaping.visible(row.event)} of {subjects.get(row.incident_id) or escaping.visible(row.incident_id)}"
