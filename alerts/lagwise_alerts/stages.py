"""The stages from a condition to a sent message, in their order.

==============  =================================  =================================================================
stage           where                              what it does
==============  =================================  =================================================================
1. evaluate     ``evaluate/evaluate.py``           matches rules, runs their timers: which alerts begin, change, end
2. inhibit      ``notify/inhibit.py``              drops what another alert already reports
3. notify       ``notify/notify.py``               makes the notifications, marks what flaps
4. mute         ``notify/mute.py``                 withholds what a silence, maintenance or acknowledgement mutes
5. correlate    ``notify/correlate.py``            gathers groups that share something in a shared incident
6. queue        ``outbox/store.py``                stores alerts and messages, rendered by ``notify/message.py``
7. group        ``notify/group.py``                makes one message of many
8. send         ``outbox/worker.py``, a channel    delivers each message, and tries again
==============  =================================  =================================================================

Stages 1 to 5 are the pure functions below: no clock, no I/O. Stage 6 is one transaction that reads the alerts, runs
stages 1 to 5, renders the messages, and stores both (:func:`lagwise_alerts.outbox.store.decide_and_queue`). Stages 7
and 8 run in a thread per channel. docs/architecture.md ("The alert goes out") shows the same list.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from lagwise_alerts.evaluate.evaluate import evaluate
from lagwise_alerts.model import Alert, AlertKind, Decision, Notification, Situation
from lagwise_alerts.notify.correlate import correlate
from lagwise_alerts.notify.inhibit import inhibit
from lagwise_alerts.notify.mute import MuteResult, mute
from lagwise_alerts.notify.mute_state import MuteState
from lagwise_alerts.notify.notify import notify
from lagwise_alerts.rules.rule_file import RuleBook


def decide_and_mute(
    book: RuleBook,
    situation: Situation,
    alerts: Mapping[str, Alert],
    ended: Mapping[str, Alert],
    mute_state: MuteState,
    now: datetime,
) -> MuteResult:
    """Stages 1 to 5. Arguments are those of :func:`decide`; ``mute_state`` is what mutes alerts at this moment.

    A shared incident is muted as any alert is, after its members have been gathered. But an acknowledgement withholds
    neither what goes to channels that have not heard of it, nor another trouble, which ends the acknowledgement.
    """
    shared = {key: alert for key, alert in alerts.items() if alert.subject.kind is AlertKind.SHARED_INCIDENT}
    others = {key: alert for key, alert in alerts.items() if key not in shared}
    by_id = {alert.incident_id: alert for alert in shared.values()}
    muted = mute(decide(book, situation, others, now, ended, by_id), others, mute_state, now)
    found = correlate(muted.decision, others, shared, situation, mute_state, book, now)
    # What a silence withheld is still due to channels that have not heard of it.
    untold = {
        key
        for key, one in by_id.items()
        if key in mute_state.withheld and not set(mute_state.withheld[key].channels) <= set(one.channels)
    }
    past = found.past_acknowledgement | untold
    given = {key: one for key, one in mute_state.acknowledgements.items() if key not in past}
    of_shared = mute(found.shared, shared, replace(mute_state, acknowledgements=given), now)
    notifications = (*of_shared.decision.notifications, *found.members.notifications)
    decision = Decision(
        (*found.members.changed, *of_shared.decision.changed),
        found.members.cancelled,
        tuple(map(found.named, notifications)),
    )
    return MuteResult(
        decision,
        (*muted.withheld, *of_shared.withheld),
        (*muted.no_longer_withheld, *of_shared.no_longer_withheld),
        tuple(sorted(found.back & mute_state.acknowledgements.keys())),
        found.covered,
    )


def decide(
    book: RuleBook,
    situation: Situation,
    alerts: Mapping[str, Alert],
    now: datetime,
    ended: Mapping[str, Alert] = MappingProxyType({}),
    shared: Mapping[str, Alert] = MappingProxyType({}),
) -> Decision:
    """Stages 1 to 3: the alerts that change, and the notifications, the loudest first.

    ``alerts`` are the pending and firing alerts by fingerprint, ``ended`` the latest one of each subject that ended
    recently, ``shared`` the open shared incidents by their ids. The same situation again, with the resulting alerts,
    changes nothing and sends nothing.
    """
    changed: list[Alert] = []
    cancelled: list[str] = []
    notifications: list[Notification] = []
    by_subject = {alert.subject: alert for alert in alerts.values()}
    for evaluated in evaluate(book, situation, alerts, ended, now):
        if evaluated.is_cancelled:
            cancelled.append(evaluated.after.incident_id)
            continue
        alert, notification = notify(inhibit(evaluated, by_subject, shared), book, now)
        by_subject[alert.subject] = alert
        if alert != evaluated.before:
            changed.append(alert)
        if notification is not None:
            notifications.append(notification)
    notifications.sort(
        key=lambda n: (n.severity.rank, n.alert.subject.kind, n.alert.subject.cluster or "", n.alert.fingerprint)
    )
    return Decision(tuple(changed), tuple(cancelled), tuple(notifications))
