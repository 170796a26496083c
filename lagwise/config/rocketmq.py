"""RocketMQ clusters in the settings."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Settings, WatchedCluster
from lagwise.config.values import IN_HOURS, IN_SECONDS, Name, PathOrUri, Reference, SecretPart


class Tls(Settings):
    """TLS to the servers of a cluster."""

    enabled: bool = False
    """Encrypt connections."""
    ca_file: Path | None = None
    """PEM file of the certificates to trust; null trusts those of the machine."""
    verify: bool = True
    """Require trusted certificates of the servers. If false, anyone in between can read the traffic."""
    verify_host_name: bool = True
    """Require that the certificate names the host that is connected to."""
    certificate_file: Path | None = None
    """PEM file of the client certificate, if servers ask for one."""
    key_file: Path | None = None
    """PEM file of its private key; null if it is in the same file."""


class LocalOffsetFiles(Settings):
    """Files in which members of broadcasting groups keep their offsets."""

    path: PathOrUri
    """Location of the files: a local path or a URI (`s3://…`, `gs://…`, `abfss://…`, `hdfs://…`) that ends with \
`/CLIENT_ID/GROUP/offsets.json`, as RocketMQ's clients name them. `*` matches any characters within a name."""
    max_age_hours: Annotated[float, Field(gt=0, le=24 * 365), IN_HOURS] = 1.0
    """Files that were not written for longer than this are ignored: their client is gone."""
    timeout_seconds: Annotated[float, Field(ge=0.1, le=60), IN_SECONDS] = 5.0
    """How long reading all files may take. Nothing else waits for it."""

    @field_validator("path")
    @classmethod
    def _ends_as_clients_name_it(cls, value: str) -> str:
        if len(value.split("/")) < 4 or not value.endswith("/offsets.json"):
            raise ValueError("it does not end with /CLIENT_ID/GROUP/offsets.json: write /*/*/offsets.json for all")
        return value


class RocketmqCluster(WatchedCluster):
    """One RocketMQ 5 cluster to watch."""

    system: Literal["rocketmq"]
    """The system that the cluster runs."""
    name: Name = "rocketmq"
    """Name of the cluster in tables, on pages and in alerts."""
    name_servers: Annotated[str, Field(min_length=1)]
    """Name servers, `host:port[,host:port…]`. The first that answers is used."""
    access_key: Annotated[str, SecretPart.SECRET] | None = None
    """User name if ACLs are on; may be a reference."""
    secret_key: Reference | None = None
    """The user's secret, as a reference `${env:NAME}` or `${file:/path}`."""
    tls: Tls = Tls()
    """TLS to name servers and brokers."""
    ask_members: bool = True
    """Ask members, through the broker, which queues they own, whether they consume in order and, in broadcasting \
groups, for their offsets. If false, owners are known only for groups with one member."""

    local_offsets: LocalOffsetFiles | None = None
    """Offset files of members of broadcasting groups (docs/rocketmq.md) that are offline or do not answer."""

    @model_validator(mode="after")
    def _keys_come_together(self) -> "RocketmqCluster":
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key go together: one of them is missing")
        return self

    @property
    def name_server_list(self) -> tuple[str, ...]:
        """The name servers one by one."""
        return tuple(address.strip() for address in self.name_servers.split(",") if address.strip())
