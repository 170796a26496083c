"""The open alerts and the silences that a caller may see."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from typing import Any

from lagwise.config import Config
from lagwise.config.visibility import Visibility
from lagwise_alerts.model import Alert
from lagwise_alerts.notify.mute_state import Silence
from lagwise_alerts.operate import queries
from lagwise_app.answers.models import OpenAlert, SilenceAnswer


class AlertAnswers:
    """Answers from the operational database. They may be asked for from any thread, and raise DatabaseError."""

    def __init__(self, config: Config) -> None:
        self._engine, self._windows = queries.connect(config), config.alerts.maintenance

    def alerts(self, visibility: Visibility, now: datetime) -> list[OpenAlert]:
        """The open alerts on groups that the caller may see; an unlimited caller sees all others as well."""
        mutes = queries.mute_state(self._engine, self._windows, now)
        return [
            _open_alert(alert, queries.operator_state(alert, mutes, now), visibility)
            for alert in queries.open_alerts(self._engine)
            if visibility.shows(alert.subject.cluster, alert.subject.group)
        ]

    def silences(
        self, visibility: Visibility, now: datetime, known: Collection[tuple[str, str]]
    ) -> list[SilenceAnswer]:
        """The silences in force and to come. ``known`` are the groups that the caller may see.

        Patterns and comments may name any group. A limited caller therefore sees a silence only if it is on one group,
        by its name, and the caller may see it.
        """
        return [
            SilenceAnswer.model_validate(_flat(silence))
            for silence in queries.silences(self._engine, now)
            if visibility.is_unlimited or silence.matcher.one_group in known
        ]


def _open_alert(alert: Alert, state: queries.OperatorState, visibility: Visibility) -> OpenAlert:
    document: dict[str, Any] = {**asdict(alert), **asdict(alert.subject), **asdict(state)}
    if not visibility.is_unlimited:
        # Incidents of other groups, and maintenance windows that may be named after them.
        document |= {"inhibited_by": None, "shared_incident": None}
        if document["muted"] is not None:
            document["muted"]["name"] = None
    return OpenAlert.model_validate(document)


def _flat(silence: Silence) -> dict[str, Any]:
    return {**asdict(silence), **asdict(silence.matcher)}
