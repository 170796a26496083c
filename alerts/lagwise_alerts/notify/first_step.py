"""The first step for whoever is notified: a command to copy and a link to the dashboard, both safe with any name."""

from collections.abc import Sequence

from lagwise.config import AnyCluster
from lagwise.links import first_commands, pages, parameters
from lagwise_alerts.model import AlertSubject, Notification


def first_command(notification: Notification, clusters: Sequence[AnyCluster]) -> str:
    """The command to run first, ready to paste."""
    subject = notification.alert.subject
    if subject.group is None:
        return "lagwise doctor"
    return first_commands.first_command(
        subject.cluster,
        subject.group,
        clusters,
        status=notification.status,
        reason=notification.reason,
        loss_cause=notification.numbers.loss_cause,
        topic=notification.numbers.worst_topic,
        transaction_seconds=notification.numbers.transaction_seconds,
        stands_still=notification.numbers.stands_still,
    )


def dashboard_link(subject: AlertSubject, dashboard_url: str) -> str:
    """The page of the dashboard on a subject."""
    if subject.group is None:
        return pages.link(pages.HEALTH, base=dashboard_url)
    return pages.link(
        pages.GROUP, {parameters.CLUSTER: subject.cluster, parameters.GROUP: subject.group}, base=dashboard_url
    )
