"""The settings of the channels, one model per ``type``. A value that may carry a token is given as a reference."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Entry
from lagwise.config.values import IN_SECONDS, HttpAddress, MailAddress, Matching, Name, Reference, Seconds

_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class _Channel(Entry):
    """The settings that every channel has."""

    name: Name
    """Name of the channel in rules and on pages."""
    timeout_seconds: Seconds = 10.0
    """An attempt fails after the receiver has sent nothing for this long."""
    attempt_timeout_seconds: Seconds = 30.0
    """An attempt fails after this long in total, even while the receiver is still sending."""

    @property
    def silence_seconds(self) -> float:
        """How long the receiver may send nothing: never longer than the whole attempt may take."""
        return min(self.timeout_seconds, self.attempt_timeout_seconds)


class _OverTls(_Channel):
    """Reached over a connection that TLS may protect."""

    ca_file: Path | None = None
    """PEM file of the certificate authorities to trust instead of the public ones; null trusts the public ones. \
Certificates are always checked: for a self-signed certificate, give that certificate here."""


class _Posted(_OverTls):
    """Posted to an address, with a header that signs in where the receiver asks for one."""

    url: HttpAddress
    """Address to which alerts are posted. It may be a reference, for an address that carries a token."""
    authorization: Reference | None = None
    """Value of the header `Authorization` (`Bearer …`, `Basic …`), as a reference; null sends none."""


class Webhook(_Posted):
    """A receiver of alerts: JSON by POST, signed."""

    type: Literal["webhook"] = "webhook"
    """The kind of channel: JSON as `lagwise.alert.v1`."""
    secret: Reference | None = None
    """Key of the HMAC-SHA256 signature, as a reference `${env:NAME}` or `${file:/path}`; null sends unsigned."""


class _AlertmanagerChannel(_Posted):
    """Posted in the words of Alertmanager: alerts have labels."""

    labels: dict[str, str] = {}
    """Labels to add to every alert, for routing (`team: payments`)."""

    @field_validator("labels")
    @classmethod
    def _are_label_names(cls, labels: dict[str, str]) -> dict[str, str]:
        for name in labels:
            if _LABEL_NAME.fullmatch(name) is None:
                raise ValueError(
                    f"{name!r} is not a valid label name: use letters, digits and underscores, and no digit first"
                )
        return labels


class AlertmanagerWebhook(_AlertmanagerChannel):
    """A receiver that understands the webhook format of Alertmanager (version 4)."""

    type: Literal["alertmanager_webhook"]
    """The kind of channel: JSON as Alertmanager sends it to a receiver, version 4."""


class Alertmanager(_AlertmanagerChannel):
    """An Alertmanager. It receives firing alerts as it would from Prometheus."""

    type: Literal["alertmanager"]
    """The kind of channel: alerts are posted to an Alertmanager (`/api/v2/alerts`), which groups and routes them."""
    url: HttpAddress
    """Address of one Alertmanager, `http://alertmanager:9093`. Add a channel for each member of an Alertmanager \
cluster."""
    repeat_seconds: Annotated[float, Field(ge=15, le=3600), IN_SECONDS] = 60.0
    """How often firing alerts are sent again, so that a restarted Alertmanager learns of them."""
    expire_seconds: Annotated[float, Field(ge=60, le=86400), IN_SECONDS] = 3600.0
    """How long an alert stays active in Alertmanager after Lagwise has stopped sending it, for example because \
Lagwise is down. A resolved alert is reported at once."""

    @model_validator(mode="after")
    def _outlives_the_repeats(self) -> Self:
        if self.expire_seconds < 3 * self.repeat_seconds:
            raise ValueError(
                "expire_seconds must be at least three times repeat_seconds, or firing alerts would seem to end"
            )
        return self


class PagerDuty(_OverTls):
    """A service of PagerDuty, through an integration of the type Events API v2."""

    type: Literal["pagerduty"]
    """The kind of channel: PagerDuty, Events API v2."""
    routing_key: Reference
    """The integration key of the service, as a reference `${env:NAME}` or `${file:/path}`."""
    url: HttpAddress = "https://events.pagerduty.com/v2/enqueue"
    """Address to which events are posted; `https://events.eu.pagerduty.com/v2/enqueue` for accounts in the EU \
region."""


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
    """Port of the server; null is 587 with `starttls`, 465 with `tls`, 25 with `none`."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`starttls` upgrades the connection to TLS, `tls` uses TLS from the start, `none` does not encrypt. If the \
server offers no TLS, nothing is sent: there is no fallback to an unencrypted connection."""
    username: str | None = None
    """User name; null sends mail without signing in."""
    password: Reference | None = None
    """Password of that user, as a reference `${env:NAME}` or `${file:/path}`."""
    sender: MailAddress
    """Sender address of the mails."""
    to: Annotated[tuple[MailAddress, ...], Field(min_length=1)]
    """Recipient addresses."""

    @model_validator(mode="after")
    def _signs_in_safely(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together: give both or neither")
        if self.password is not None and self.security == "none":
            raise ValueError("the password would be sent unencrypted: set security to starttls or tls")
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
