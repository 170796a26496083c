"""What an operator does from the page: acknowledge, silence, end a silence, send again, test a channel.

Each acts on what its form showed, by incident id: if the list changes meanwhile, the button still acts on the alert
that was chosen. What is typed is read when the button is pressed: the press itself is what ends the typing.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

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
    actions,
    literal_pattern,
    resend,
    test_message,
)
from lagwise_dashboard import alert_reader, context, escaping, identity, time_zone
from lagwise_dashboard.widgets import alert_words, zone_choice

#: Keys of the session: sentences about the actions that worked, and by form the error of the one that did not.
_DONE, _FAILED = "alert_actions_done", "alert_actions_failed"
#: How long the sentence about an action stays on the screen, whatever is refreshed meanwhile.
_READ_SECONDS = 8
_DURATIONS = ("30m", "1h", "2h", "4h", "8h", "1d", "3d", "7d")
_ANY = "any"
#: Fields of the form for a silence.
_CLUSTER, _GROUP, _KIND, _SEVERITY = "silence_cluster", "silence_group", "silence_kind", "silence_severity"
_LIKE, _FOR, _WHY = "silence_like", "silence_for", "silence_comment"
_ACK_COMMENT = "ack_comment"


@dataclass(frozen=True, slots=True)
class _Form:
    """A form behind a button. It stays open until its action has succeeded or somebody closes it. ``about`` tells apart
    the same form for several subjects."""

    key: str
    label: str
    icon: str
    about: str = ""

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
        """The button that runs the action, and below it the error of the last attempt."""
        st.button(label, on_click=self.do, args=(work, *args), disabled=disabled, key=f"{self._id}_do", type="primary")
        if error := st.session_state.get(_FAILED, {}).get(self._id):
            st.error(escaping.markdown(error), icon=":material/error:")

    def do(self, work: Callable[..., str], *args: object) -> None:
        """Run the action, if this reader may, and keep its result for the next drawing."""
        self.clear_error()
        try:
            if (person := _operator()) is None:
                raise OperatorError("this needs the role operator")
            st.session_state.setdefault(_DONE, []).append(work(identity.operator(person), *args))
        except LagwiseError as error:
            st.session_state.setdefault(_FAILED, {})[self._id] = clean(str(error))
        else:
            st.session_state[f"{self._id}_done"] = self._times + 1
        alert_reader.clear_cache()

    def show_error_alone(self) -> None:
        """Draw the error of the last attempt once, where the form is not drawn any more."""
        if error := st.session_state.get(_FAILED, {}).pop(self._id, None):
            st.error(escaping.markdown(error), icon=":material/error:")

    def clear_error(self) -> None:
        """Forget the error of the last attempt."""
        st.session_state.get(_FAILED, {}).pop(self._id, None)

    def field(self, name: str) -> str:
        """The key of a field, or of the form itself: a new one after each success.

        A new key closes the form, and empties its fields, for certain. Setting the old keys would not: a refresh that
        the browser asks for at that moment says again that the form is open and what was typed.
        """
        name += self.about
        return f"{name}_{self._times}" if self._times else name

    def value(self, name: str) -> Any:
        """What a field holds."""
        return st.session_state[self.field(name)]

    @property
    def _id(self) -> str:
        return self.key + self.about

    @property
    def _times(self) -> int:
        times: int = st.session_state.get(f"{self._id}_done", 0)
        return times


_ACKNOWLEDGE = _Form("acknowledge_form", "Acknowledge", "pan_tool")
_UNACKNOWLEDGE = _Form("take_back_form", "Unacknowledge", "undo")
_SILENCE = _Form("silence_form", "Silence", "notifications_off")
_UNSILENCE = _Form("unsilence_form", "End a silence", "notifications_active")
_RESEND = _Form("resend_form", "Send again", "forward_to_inbox")
_TEST = _Form("try_form", "Test a channel", "send")


def bar(firing: Sequence[Alert], acknowledged: Sequence[Alert]) -> None:
    """The forms about alerts; for a reader who may not act, why not."""
    _show_what_was_done()
    if (operator := _operator()) is None:
        for error in st.session_state.pop(_FAILED, {}).values():
            st.error(escaping.markdown(error), icon=":material/error:")
        how = f": {person.advice}" if (person := identity.current()) is not None else ""
        st.caption(f"Read-only. Acknowledging and silencing need the role operator{how}.")
        return
    firing, acknowledged = (list(filter(operator.may_act_on_alert, alerts)) for alerts in (firing, acknowledged))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _acknowledge_form(firing)
        _unacknowledge_form(acknowledged)
        _silence_form([*firing, *acknowledged])
        st.caption(f"You act as {escaping.markdown(operator.name)}. Actions are recorded below.", width="content")


def bar_of_group(cluster: str, group: str, firing: Sequence[Alert], acknowledged: Sequence[Alert]) -> None:
    """The forms about the alerts of one group; nothing for a reader who may not act."""
    _show_what_was_done()
    about = f"_{cluster}/{group}"
    acknowledge, unacknowledge, silence = (replace(f, about=about) for f in (_ACKNOWLEDGE, _UNACKNOWLEDGE, _SILENCE))
    may_act = (person := _operator()) is not None and person.may_act_on(cluster, group)
    for form, is_drawn in ((acknowledge, firing), (unacknowledge, acknowledged), (silence, True)):
        # The alert may have ended meanwhile, or the reader's role: the form is gone then, and its error is not.
        if not (may_act and is_drawn):
            form.show_error_alone()
    if not may_act:
        return
    if firing:
        with acknowledge.open():
            _list(firing)
            _acknowledge_fields(acknowledge)
            acknowledge.button("Acknowledge", _acknowledge, acknowledge, tuple(one.incident_id for one in firing))
    if acknowledged:
        with unacknowledge.open():
            _list(acknowledged)
            st.caption("Further changes will be notified again.")
            unacknowledge.button("Unacknowledge", _unacknowledge, tuple(one.incident_id for one in acknowledged))
    with silence.open():
        st.caption("Holds back notifications about this group until it ends. A shared incident still notifies.")
        _silence_fields(silence)
        subject = Matcher(cluster=literal_pattern(cluster), group=literal_pattern(group))
        silence.button("Silence", _make_silence, silence, subject)


def end_silence(silences: Sequence[Silence]) -> None:
    """End one of the silences now."""
    person = _operator()
    if person is None or not (silences := list(filter(person.may_act_on_silence, silences))):
        return
    with _UNSILENCE.open():
        words = {one.id: f"{one.id}: {escaping.visible(actions.matcher_words(one.matcher))}" for one in silences}
        number = st.selectbox("Silence", list(words), format_func=words.__getitem__, key="unsilence_number")
        st.caption("Alerts that it muted and that still fire are notified within seconds.")
        _UNSILENCE.button("End it now", _unsilence, number)


def send_again(dead: Sequence[DeliveryRow], subjects: dict[str, str]) -> None:
    """Queue undelivered messages again."""
    if not dead or not identity.acts_on_everything():
        return
    with _RESEND.open():
        words = {row.id: f"{row.id}: {escaping.visible(row.channel)}, {_about(row, subjects)}" for row in dead}
        ids = st.multiselect(
            "Undelivered messages (required)", list(words), format_func=words.__getitem__, key="resend_ids"
        )
        st.caption("A message is not sent if a later one about the same incident has been delivered.")
        _RESEND.button("Send again", _resend, tuple(ids), disabled=not ids)


def test_channel() -> None:
    """Send a test through a channel, and show the answer."""
    names = [channel.name for channel in context.config().alerts.channels]
    if not names or not identity.acts_on_everything():
        return
    with _TEST.open():
        name = st.selectbox("Channel", names, key="try_name")
        over = st.checkbox("Send the resolution", key="try_over", help="For receivers that track open alerts.")
        st.caption("The message says that it is a test and has severity info. It is sent once, immediately.")
        _TEST.button("Send the test", _send_test, name, over)


def _acknowledge_form(firing: Sequence[Alert]) -> None:
    with _ACKNOWLEDGE.open(disabled=not firing):
        ids = _choose_alerts(firing, "ack_ids")
        _acknowledge_fields(_ACKNOWLEDGE)
        _ACKNOWLEDGE.button("Acknowledge", _acknowledge, _ACKNOWLEDGE, ids, disabled=not ids)


def _list(rows: Sequence[Alert]) -> None:
    """What a form without a choice acts on."""
    st.markdown("\n".join(f"- {escaping.markdown(_line(row))}" for row in rows))


def _acknowledge_fields(form: _Form) -> None:
    st.text_input("Comment", key=form.field(_ACK_COMMENT), max_chars=500)
    st.caption("Acknowledged alerts are not notified again unless they become more severe. Ends with the alert.")


def _unacknowledge_form(acknowledged: Sequence[Alert]) -> None:
    if not acknowledged:
        return
    with _UNACKNOWLEDGE.open():
        ids = _choose_alerts(acknowledged, "back_ids")
        _UNACKNOWLEDGE.button("Unacknowledge", _unacknowledge, ids, disabled=not ids)


def _choose_alerts(rows: Sequence[Alert], key: str) -> tuple[str, ...]:
    """A choice between alerts: the ids of their incidents."""
    words = {row.incident_id: _line(row) for row in rows}
    return tuple(st.multiselect("Alerts (required)", list(words), format_func=words.__getitem__, key=key))


def _silence_form(rows: Sequence[Alert]) -> None:
    with _SILENCE.open():
        by_id = {row.incident_id: row for row in rows}
        st.selectbox(
            "Like this alert",
            list(by_id),
            index=None,
            format_func=lambda incident_id: _line(by_id[incident_id]),
            key=_SILENCE.field(_LIKE),
            on_change=_fill,
            args=(by_id,),
            placeholder="or enter patterns below",
        )
        st.caption("At least one of these four is required:")
        for label, name in (("Groups", _GROUP), ("Clusters", _CLUSTER)):
            st.text_input(
                label, key=_SILENCE.field(name), help="A regular expression for the whole name; empty is any."
            )
        st.multiselect("Kinds", [kind.value for kind in AlertKind], key=_SILENCE.field(_KIND), placeholder=_ANY)
        st.multiselect("Severities", [s.value for s in Severity], key=_SILENCE.field(_SEVERITY), placeholder=_ANY)
        _silence_fields(_SILENCE)
        _SILENCE.button("Silence", _make_silence, _SILENCE, None)


def _silence_fields(form: _Form) -> None:
    st.selectbox("For (required)", _DURATIONS, index=2, key=form.field(_FOR), accept_new_options=True)
    st.text_input("Reason (required)", key=form.field(_WHY), max_chars=500, placeholder="for example: deploy")


def _fill(by_id: dict[str, Alert]) -> None:
    """Fill in the patterns that match the chosen alert's subject and no other."""
    row = by_id.get(_SILENCE.value(_LIKE))
    if row is not None:
        kind, cluster, group = row.subject.kind, row.subject.cluster, row.subject.group
        st.session_state[_SILENCE.field(_GROUP)] = "" if group is None else literal_pattern(group)
        st.session_state[_SILENCE.field(_CLUSTER)] = "" if cluster is None else literal_pattern(cluster)
        st.session_state[_SILENCE.field(_KIND)] = [] if kind is AlertKind.GROUP else [kind.value]


def _acknowledge(by: Operator, form: _Form, ids: tuple[str, ...]) -> str:
    comment = form.value(_ACK_COMMENT)
    for incident_id in ids:
        actions.acknowledge(alert_reader.engine(), incident_id, comment=comment, by=by, now=context.now())
    return f"{plural(len(ids), 'alert')} acknowledged."


def _unacknowledge(by: Operator, ids: tuple[str, ...]) -> str:
    for incident_id in ids:
        actions.take_back(alert_reader.engine(), incident_id, by=by, now=context.now())
    return f"{plural(len(ids), 'alert')} unacknowledged: their next changes are notified again."


def _make_silence(by: Operator, form: _Form, matcher: Matcher | None) -> str:
    """``matcher`` None: as the form's own fields say."""
    zone_choice.use()  # a callback comes before the page
    now, value = context.now(), form.value
    if matcher is None:
        matcher = Matcher(
            cluster=value(_CLUSTER) or None,
            group=value(_GROUP) or None,
            kind="|".join(value(_KIND)) or None,
            severity="|".join(value(_SEVERITY)) or None,
        )
    try:
        ends_at = now + timedelta(seconds=parse_duration(value(_FOR)))
    except ValueError as error:
        raise OperatorError(str(error)) from None
    made = actions.silence(
        alert_reader.engine(), matcher, starts_at=now, ends_at=ends_at, comment=value(_WHY), by=by, now=now
    )
    return f"Silence {made.id} ({actions.matcher_words(matcher)}) until {time_zone.clock(made.ends_at, now)}."


def _unsilence(by: Operator, number: int) -> str:
    actions.unsilence(alert_reader.engine(), number, by=by, now=context.now())
    return f"Silence {number} has ended."


def _resend(by: Operator, ids: tuple[int, ...]) -> str:
    done = resend.resend(alert_reader.engine(), ids, by=by, now=context.now())
    outdated = f"; {done.outdated} outdated, not sent" if done.outdated else ""
    return f"{plural(done.queued, 'message')} queued again{outdated}."


def _send_test(by: Operator, name: str, over: bool) -> str:
    by.check_acts_on_everything()
    answer = test_message.send_test(context.config(), name, context.now, over=over)
    verdict = "accepted it" if answer.delivered else "did not accept it"
    said = f"{name} ({answer.receiver}) {verdict}: {answer.answer or 'no answer'}"
    actions.record_test(alert_reader.engine(), name, said, by=by, now=context.now())
    if not answer.delivered:
        raise OperatorError(said)
    return said


def _show_what_was_done() -> None:
    for done in st.session_state.pop(_DONE, []):
        st.toast(escaping.markdown(done), icon=":material/check:", duration=_READ_SECONDS)


def _operator() -> identity.Person | None:
    """This reader, if they may act."""
    return person if (person := identity.current()) is not None and person.may_act else None


def _line(row: Alert) -> str:
    return f"{alert_words.severity_label(row.severity)} {alert_words.about(row)}: {escaping.visible(row.status)}"


def _about(row: DeliveryRow, subjects: dict[str, str]) -> str:
    return f"{escaping.visible(row.event)} of {subjects.get(row.incident_id) or escaping.visible(row.incident_id)}"
