"""The settings of the channels, one model per ``type``. What may carry a token is named, never written down."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Settings
from lagwise.config.values import IN_SECONDS, HttpAddress, MailAddress, Matching, Name, Reference, Seconds

_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class _Channel(Settings):
    """What every channel has."""

    name: Name
    """How the channel is called in rules and pages."""
    timeout_seconds: Seconds = 10.0
    """How long the receiver may keep silent before an attempt is given up."""
    attempt_timeout_seconds: Seconds = 30.0
    """How long one attempt may take in all, however busy the receiver keeps it."""

    @property
    def silence_seconds(self) -> float:
        """How long the receiver may keep silent: never longer than the attempt may take."""
        return min(self.timeout_seconds, self.attempt_timeout_seconds)


class _OverTls(_Channel):
    ca_file: Path | None = None
    """PEM file of the certificate authorities to trust in place of the public ones; null trusts those. Certificates \
are always checked: for a self-signed one, name the certificate itself here."""


class Webhook(_OverTls):
    """A receiver of alerts: JSON by POST, signed."""

    type: Literal["webhook"] = "webhook"
    """The kind of channel: JSON as `lagwise.alert.v1`."""
    url: HttpAddress
    """Where alerts are posted; may be a reference, for addresses that carry a token."""
    secret: Reference | None = None
    """Key of the HMAC-SHA256 signature, as a reference `${env:NAME}` or `${file:/path}`; null sends unsigned."""
    authorization: Reference | None = None
    """What is sent as the header `Authorization` (`Bearer …`, `Basic …`), as a reference; null sends none."""


class _AlertmanagerLabels(_OverTls):
    authorization: Reference | None = None
    """What is sent as the header `Authorization` (`Bearer …`, `Basic …`), as a reference; null sends none."""
    labels: dict[str, str] = {}
    """Labels that every alert gets, for routing (`team: payments`)."""

    @field_validator("labels")
    @classmethod
    def _are_label_names(cls, labels: dict[str, str]) -> dict[str, str]:
        for name in labels:
            if _LABEL_NAME.fullmatch(name) is None:
                raise ValueError(
                    f"{name!r} cannot be the name of a label: letters, digits and underscores, no digit first"
                )
        return labels


class AlertmanagerWebhook(_AlertmanagerLabels):
    """A receiver that understands what Alertmanager sends to its webhooks (version 4)."""

    type: Literal["alertmanager_webhook"]
    """The kind of channel: JSON as Alertmanager sends it to a receiver, version 4."""
    url: HttpAddress
    """Where alerts are posted; may be a reference, for addresses that carry a token."""


class Alertmanager(_AlertmanagerLabels):
    """An Alertmanager, which is told what fires as Prometheus tells it."""

    type: Literal["alertmanager"]
    """The kind of channel: alerts are put into an Alertmanager (`/api/v2/alerts`), which groups and routes them."""
    url: HttpAddress
    """Address of one Alertmanager, `http://alertmanager:9093`. Of several that form a cluster, each is a channel."""
    repeat_seconds: Annotated[float, Field(ge=15, le=3600), IN_SECONDS] = 60.0
    """How often what fires is sent again, so that an Alertmanager that was restarted knows it."""
    expire_seconds: Annotated[float, Field(ge=60, le=86400), IN_SECONDS] = 3600.0
    """When an alert ends in Alertmanager of which it hears no more because Lagwise is gone. The end of an alert that \
Lagwise sees is told at once."""

    @model_validator(mode="after")
    def _outlives_the_repeats(self) -> Self:
        if self.expire_seconds < 3 * self.repeat_seconds:
            raise ValueError("expire_seconds must be at least three times repeat_seconds, or what fires seems to end")
        return self


class PagerDuty(_OverTls):
    """A service of PagerDuty, through an integration of the type Events API v2."""

    type: Literal["pagerduty"]
    """The kind of channel: PagerDuty, Events API v2."""
    routing_key: Reference
    """The integration key of the service, as a reference `${env:NAME}` or `${file:/path}`."""
    url: HttpAddress = "https://events.pagerduty.com/v2/enqueue"
    """Where events are posted; `https://events.eu.pagerduty.com/v2/enqueue` for accounts in the EU region."""


class Slack(_OverTls):
    """A channel of Slack, through an incoming webhook."""

    type: Literal["slack"]
    """The kind of channel: Slack, through an incoming webhook."""
    url: Reference
    """Address of the incoming webhook, as a reference: whoever knows it can write into the channel."""


class Teams(_OverTls):
    """A channel or chat of Microsoft Teams, through a webhook of the Workflows app."""

    type: Literal["teams"]
    """The kind of channel: Microsoft Teams, through a webhook of the Workflows app (Power Automate)."""
    url: Reference
    """Address of the workflow, as a reference: whoever knows it can write into the channel."""


class Email(_OverTls):
    """Mail, through an SMTP server."""

    type: Literal["email"]
    """The kind of channel: mail through an SMTP server."""
    host: Annotated[str, Matching(r"[A-Za-z0-9.:_-]{1,253}", "the name or address of a host")]
    """The SMTP server."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Its port; null is 587 with `starttls`, 465 with `tls`, 25 with `none`."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """Whether the connection is upgraded to TLS, is TLS from the start, or is in the clear. Where the server offers \
no TLS, nothing is sent in the clear instead."""
    username: str | None = None
    """Name to sign in with; null signs in nowhere."""
    password: Reference | None = None
    """Its password, as a reference `${env:NAME}` or `${file:/path}`."""
    sender: MailAddress
    """Address that mails are from."""
    to: Annotated[tuple[MailAddress, ...], Field(min_length=1)]
    """Addresses that mails go to."""

    @model_validator(mode="after")
    def _signs_in_safely(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together: give both or neither")
        if self.password is not None and self.security == "none":
            raise ValueError("the password would go over the wire in the clear: set security to starttls or tls")
        return self

    @property
    def server_port(self) -> int:
        """The port, or the usual one."""
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]


class Apprise(_Channel):
    """Any service that Apprise knows."""

    type: Literal["apprise"]
    """The kind of channel: any service that Apprise knows. Needs the extra `apprise`."""
    url: Reference
    """Apprise's URL of the service (`tgram://…`, `matrixs://…`), as a reference, because it carries the token."""


AnyChannel = Annotated[
    Webhook | AlertmanagerWebhook | Alertmanager | PagerDuty | Slack | Teams | Email | Apprise,
    Field(discriminator="type"),
]
