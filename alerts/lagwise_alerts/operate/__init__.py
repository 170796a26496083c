"""What operators see and do: open alerts, silences, acknowledgements, deliveries. The dashboard knows only this."""

from lagwise_alerts.model import Alert, AlertKind, AlertState, Severity
from lagwise_alerts.notify.mute_state import (
    Acknowledgement,
    Matcher,
    Mute,
    MuteCause,
    MuteState,
    Silence,
    literal_pattern,
)
from lagwise_alerts.operate import actions, queries, resend, test_message
from lagwise_alerts.operate.actions import Operator, Via, matcher_words
from lagwise_alerts.operate.queries import ActionRow, AlertCounts, OperatorState
from lagwise_alerts.outbox.store import DeliveryRow
from lagwise_alerts.rules.owners import Owner, owner_of
from lagwise_alerts.rules.rule_file import load_rules

__all__ = [
    "Acknowledgement",
    "ActionRow",
    "Alert",
    "AlertCounts",
    "AlertKind",
    "AlertState",
    "DeliveryRow",
    "Matcher",
    "Mute",
    "MuteCause",
    "MuteState",
    "Operator",
    "OperatorState",
    "Owner",
    "Severity",
    "Silence",
    "Via",
    "actions",
    "literal_pattern",
    "load_rules",
    "matcher_words",
    "owner_of",
    "queries",
    "resend",
    "test_message",
]
