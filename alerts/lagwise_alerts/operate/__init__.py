"""What operators see and do: open alerts, silences, acknowledgements, deliveries. The dashboard knows only this."""

from lagwise_alerts.model import CLUSTER_FINDINGS, Alert, AlertKind, AlertState, Severity
from lagwise_alerts.notify.mute_state import (
    Acknowledgement,
    Matcher,
    Mute,
    MuteCause,
    MuteState,
    Silence,
    literal_pattern,
)
from lagwise_alerts.operate import actions, queries, resend, saved_views, test_message
from lagwise_alerts.operate.actions import Operator, Via, matcher_words
from lagwise_alerts.operate.queries import ActionRow, AlertCounts, IncidentMessage, OperatorState
from lagwise_alerts.operate.saved_views import SavedView
from lagwise_alerts.outbox.store import DeliveryRow
from lagwise_alerts.rules.owners import Owner, owner_of
from lagwise_alerts.rules.rule_file import load_rules
from lagwise_alerts.rules.shared_incidents import SharedIncidents

__all__ = [
    "CLUSTER_FINDINGS",
    "Acknowledgement",
    "ActionRow",
    "Alert",
    "AlertCounts",
    "AlertKind",
    "AlertState",
    "DeliveryRow",
    "IncidentMessage",
    "Matcher",
    "Mute",
    "MuteCause",
    "MuteState",
    "Operator",
    "OperatorState",
    "Owner",
    "SavedView",
    "Severity",
    "SharedIncidents",
    "Silence",
    "Via",
    "actions",
    "literal_pattern",
    "load_rules",
    "matcher_words",
    "owner_of",
    "queries",
    "resend",
    "saved_views",
    "test_message",
]
