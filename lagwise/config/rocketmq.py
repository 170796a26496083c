"""RocketMQ clusters in the settings."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Settings
from lagwise.config.objectives import WithObjectives
from lagwise.config.selection import GroupSelection
from lagwise.config.values import Name
from lagwise.secrets import is_reference


class Tls(Settings):
    """TLS towards the servers of a cluster."""

    enabled: bool = False
    """Whether connections are encrypted."""
    ca_file: Path | None = None
    """Certificates to trust, as PEM; null is those of the machine."""
    verify: bool = True
    """Whether the servers' certificates must be trusted ones. Without, anybody in between can read along."""
    verify_host_name: bool = True
    """… and be made out to the address that is connected to."""
    certificate_file: Path | None = None
    """Our own certificate, as PEM, where servers ask for one."""
    key_file: Path | None = None
    """The key of that, as PEM; null is in the same file."""


class RocketmqCluster(WithObjectives):
    """One RocketMQ 5 cluster to watch."""

    system: Literal["rocketmq"]
    """What the cluster runs."""
    name: Name = "rocketmq"
    """How the cluster is called in tables, pages and alerts."""
    name_servers: Annotated[str, Field(min_length=1)]
    """Name servers, `host:port[,host:port…]`: the first that answers is asked."""
    access_key: str | None = None
    """Name of the user where ACLs are on; may be a reference."""
    secret_key: str | None = None
    """The user's secret, as a reference `${env:NAME}` or `${file:/path}`."""
    groups: GroupSelection = GroupSelection()
    """Which groups are watched."""
    interval_seconds: Annotated[float, Field(ge=1, le=3600)] = 15.0
    """How often the cluster is sampled."""
    timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 10.0
    """How long one request to the cluster may take."""
    tls: Tls = Tls()
    """TLS towards name servers and brokers."""
    ask_members: bool = True
    """Whether members are asked, through the broker, which queues they own, whether they read in order, and, in \
broadcasting groups, how far they are. Without it, who owns what is only known of groups with one member."""

    @field_validator("secret_key")
    @classmethod
    def _secret_is_reference(cls, value: str | None) -> str | None:
        if value is not None and not is_reference(value):
            raise ValueError("is a secret: write ${env:NAME} or ${file:/path} here, not the secret itself")
        return value

    @model_validator(mode="after")
    def _keys_come_together(self) -> "RocketmqCluster":
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key come together: one of them is missing")
        return self

    @property
    def name_server_list(self) -> tuple[str, ...]:
        """The name servers one by one."""
        return tuple(address.strip() for address in self.name_servers.split(",") if address.strip())
