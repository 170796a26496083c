"""What operators see and do: open alerts, silences, acknowledgements, deliveries. The dashboard knows only this."""

from lagwise_alerts.model import AlertKind, Phase, Severity
from lagwise_alerts.notify.mute import Acknowledgement, Matcher, Mute, MuteCause, Orders, Silence, exactly
from lagwise_alerts.operate import actions, queries, resend, test_message
from lagwise_alerts.operate.actions import Operator, Via, matcher_words
from lagwise_alerts.operate.queries import ActionRow, AlertCounts, AlertRow, OperatorState
from lagwise_alerts.outbox.store import DeliveryRow
from lagwise_alerts.rules.owners import Owner, owner_of
from lagwise_alerts.rules.rule_file import load_rules

__all__ = [
    "Acknowledgement",
    "ActionRow",
    "AlertCounts",
    "AlertKind",
    "AlertRow",
    "DeliveryRow",
    "Matcher",
    "Mute",
    "MuteCause",
    "Operator",
    "OperatorState",
    "Orders",
    "Owner",
    "Phase",
    "Severity",
    "Silence",
    "Via",
    "actions",
    "exactly",
    "load_rules",
    "matcher_words",
    "owner_of",
    "queries",
    "resend",
    "test_message",
]
