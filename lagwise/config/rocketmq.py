"""RocketMQ clusters in the settings."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Settings
from lagwise.config.name_filter import NameFilter
from lagwise.config.objectives import WithObjectives
from lagwise.config.values import IN_HOURS, IN_SECONDS, Holds, Name, PathOrUri, Reference


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


class LocalOffsetFiles(Settings):
    """Files in which members of broadcasting groups keep how far they are."""

    path: PathOrUri
    """Where they are: a local path or a URI (`s3://…`, `gs://…`, `abfss://…`, `hdfs://…`) that ends with \
`/CLIENT_ID/GROUP/offsets.json`, as RocketMQ's clients name them; `*` stands for any characters within a name."""
    max_age_hours: Annotated[float, Field(gt=0, le=24 * 365), IN_HOURS] = 1.0
    """A client that has not written its file for so long has gone for good: the file is not looked at."""
    timeout_seconds: Annotated[float, Field(ge=0.1, le=60), IN_SECONDS] = 5.0
    """How long reading them all may take. Nothing else waits for it."""

    @field_validator("path")
    @classmethod
    def _ends_as_clients_name_it(cls, value: str) -> str:
        if len(value.split("/")) < 4 or not value.endswith("/offsets.json"):
            raise ValueError("it does not end with /CLIENT_ID/GROUP/offsets.json: write /*/*/offsets.json for all")
        return value


class RocketmqCluster(WithObjectives):
    """One RocketMQ 5 cluster to watch."""

    system: Literal["rocketmq"]
    """What the cluster runs."""
    name: Name = "rocketmq"
    """How the cluster is called in tables, pages and alerts."""
    name_servers: Annotated[str, Field(min_length=1)]
    """Name servers, `host:port[,host:port…]`: the first that answers is asked."""
    access_key: Annotated[str, Holds.SECRET] | None = None
    """Name of the user where ACLs are on; may be a reference."""
    secret_key: Reference | None = None
    """The user's secret, as a reference `${env:NAME}` or `${file:/path}`."""
    groups: NameFilter = NameFilter()
    """Which groups are watched."""
    interval_seconds: Annotated[float, Field(ge=1, le=3600), IN_SECONDS] = 15.0
    """How often the cluster is sampled."""
    timeout_seconds: Annotated[float, Field(ge=1, le=300), IN_SECONDS] = 10.0
    """How long one request to the cluster may take."""
    tls: Tls = Tls()
    """TLS towards name servers and brokers."""
    ask_members: bool = True
    """Whether members are asked, through the broker, which queues they own, whether they read in order, and, in \
broadcasting groups, how far they are. Without it, who owns what is only known of groups with one member."""

    local_offsets: LocalOffsetFiles | None = None
    """Files of broadcasting groups' members (docs/rocketmq.md), for those that are not online or do not answer."""

    @model_validator(mode="after")
    def _keys_come_together(self) -> "RocketmqCluster":
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key come together: one of them is missing")
        return self

    @property
    def name_server_list(self) -> tuple[str, ...]:
        """The name servers one by one."""
        return tuple(address.strip() for address in self.name_servers.split(",") if address.strip())
