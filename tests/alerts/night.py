"""A night in which groups get worse together: rounds of the stages that decide, on alerts kept from round to round."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lagwise.domain.correlation import GroupKey, GroupTraits
from lagwise.domain.group_record import GroupNumbers
from lagwise_alerts.model import Alert, AlertKind, ClusterView, Condition, Notification, Situation
from lagwise_alerts.notify.mute_state import MuteState, Withheld
from lagwise_alerts.rules.rule_file import RuleBook
from lagwise_alerts.stages import decide_and_mute
from tests.alerts.support import CLUSTER, at, carried_out, group_condition

TWENTY = [f"clicks-{n:02d}" for n in range(20)]
OTHERS = [f"other-{n:02d}" for n in range(30)]


@dataclass
class Night:
    """Rounds of the first five stages on alerts that are kept from round to round."""

    book: RuleBook
    watched_since: float | None = -3600
    numbers: GroupNumbers | None = None
    #: From this second on, groups that are losing data have the finding that they lost some.
    lost_from: float = 0
    #: When groups got the status that they are seen with, where that is earlier.
    since: Mapping[str, float] = field(default_factory=dict)
    #: Groups that are not there any more.
    gone: set[str] = field(default_factory=set)
    traits: Mapping[GroupKey, GroupTraits] = field(default_factory=dict)
    state: MuteState = field(default_factory=MuteState)
    alerts: dict[str, Alert] = field(default_factory=dict)
    ended: dict[str, Alert] = field(default_factory=dict)
    withheld: dict[str, Withheld] = field(default_factory=dict)

    def situation(self, second: float, statuses: Mapping[str, str]) -> Situation:
        """A sample with these statuses, on a background of groups that are well."""
        every = dict.fromkeys([*TWENTY, *OTHERS], "ok") | dict(statuses)
        conditions: list[Condition] = [
            group_condition(second, status, group=group, kind=AlertKind.LOSS, is_found=True)
            for group, status in statuses.items()
            if status == "losing_data" and second >= self.lost_from
        ]
        conditions += [
            group_condition(
                second,
                status,
                group=group,
                numbers=self.numbers,
                since=self.since.get(group),
                topics=("clicks",) if group.startswith("clicks") else (),
            )
            for group, status in every.items()
            if group not in self.gone
        ]
        watched = None if self.watched_since is None else at(self.watched_since)
        views = {CLUSTER: ClusterView(at(second), 120.0, True, watched)}
        return Situation(tuple(conditions), views, self.traits)

    def see(self, second: float, statuses: Mapping[str, str]) -> list[Notification]:
        """The notifications of such a sample."""
        situation = self.situation(second, statuses)
        state = MuteState(self.state.silences, (), self.state.acknowledgements, self.withheld)
        result = decide_and_mute(self.book, situation, self.alerts, self.ended, state, at(second + 5))
        self.alerts, ended = carried_out(self.alerts, result.decision.changed, result.decision.cancelled)
        self.ended |= {alert.fingerprint: alert for alert in ended}
        self.withheld = {k: v for k, v in self.withheld.items() if k not in result.no_longer_withheld}
        self.withheld |= {one.incident_id: one for one in result.withheld}
        gone = set(result.no_longer_acknowledged)
        given = {key: one for key, one in self.state.acknowledgements.items() if key not in gone}
        self.state = replace(self.state, acknowledgements=given)
        return list(result.decision.notifications)

    @property
    def shared(self) -> list[Alert]:
        return [alert for alert in self.alerts.values() if alert.subject.kind is AlertKind.SHARED_INCIDENT]

    @property
    def members(self) -> list[str]:
        return sorted(alert.subject.group or "" for alert in self.alerts.values() if alert.shared_incident)
