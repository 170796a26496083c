"""The clusters that are watched: what the settings say of each, whatever system it runs."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from lagwise.config.values import Name, Seconds
from lagwise.secrets import SECRET_KEYS, is_reference


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class GroupSelection(Settings):
    """Which groups are watched: regular expressions on the whole name."""

    include: tuple[str, ...] = (".*",)
    """A group is watched if one of these matches its whole name."""
    exclude: tuple[str, ...] = ()
    """… and none of these does."""

    @field_validator("include", "exclude")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return patterns

    def selects(self, name: str) -> bool:
        """Whether the group of this name is watched."""
        # DOTALL: names are strangers' input, and one with a line break in it must not slip through `.*`.
        included = any(re.fullmatch(pattern, name, re.DOTALL) for pattern in self.include)
        return included and not any(re.fullmatch(pattern, name, re.DOTALL) for pattern in self.exclude)


class SideTopics(Settings):
    """Topics that belong to a main topic by their name: regular expressions on the whole name, whose first group is the
    name of the main topic."""

    retry: tuple[str, ...] = (r"(.+?)[-._]retry([-._0-9].*)?",)
    """Records that could not be processed and are tried again."""
    dead_letter: tuple[str, ...] = (r"(?i)(.+?)([-._]retry([-._][^.]*?)?)?[-._](dlt|dlq|dead[-._]?letters?)",)
    """Records that were given up. A topic of both kinds is one of these."""

    @field_validator("retry", "dead_letter")
    @classmethod
    def _names_the_main_topic(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
            if not groups:
                raise ValueError(f"{pattern!r} has no group for the name of the main topic, as in (.+)-retry")
        return patterns


class WatchedCluster(Settings):
    """What the settings say of a cluster of any system."""

    name: Name
    """How the cluster is called in tables, pages and alerts."""
    groups: GroupSelection = GroupSelection()
    """Which groups are watched."""
    interval_seconds: Annotated[float, Field(ge=1, le=3600)] = 15.0
    """How often the cluster is sampled."""
    timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 10.0
    """How long one request to the cluster may take."""
    lag_objective_seconds: Seconds = 300.0
    """Age of the oldest unread record from which a group that neither grows nor shrinks is `lagging`."""


class Cluster(WatchedCluster):
    """One Kafka cluster to watch."""

    system: Literal["kafka"] = "kafka"
    """What the cluster runs."""
    name: Name = "kafka"
    """How the cluster is called in tables, pages and alerts."""
    bootstrap: Annotated[str, Field(min_length=1)]
    """Bootstrap servers, `host:port[,host:port…]`."""
    librdkafka: dict[str, str | int | float | bool] = {}
    """Passed through to librdkafka (`security.protocol`, `sasl.mechanism`, `ssl.ca.location`, …). Secrets must be \
references: `${env:NAME}` or `${file:/path}`."""
    side_topics: SideTopics = SideTopics()
    """Retry and dead-letter topics of the topics that watched groups read."""
    look_past_markers: bool = True
    """Whether the next record is fetched where a group stands still just before the end, to tell unread records from \
commit markers of transactions and gaps of compaction, which take offsets too. Needs Read on those topics; without it \
they count as lag."""
    offsets_topic: bool = False
    """Whether the topic `__consumer_offsets` is followed too: exact rebalances with causes, rewinds, commit times. \
Needs Read on that topic."""

    @field_validator("librdkafka")
    @classmethod
    def _secrets_are_references(cls, settings: dict[str, str | int | float | bool]) -> dict[str, Any]:
        for key, value in settings.items():
            if key in SECRET_KEYS and not is_reference(str(value)):
                raise ValueError(
                    f"{key} is a secret: write ${{env:NAME}} or ${{file:/path}} here, not the secret itself"
                )
        return settings


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


class RocketmqCluster(WatchedCluster):
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


KAFKA = "kafka"


def _system_of(cluster: Any) -> Any:
    """What tells which kind of cluster an entry is; without it, Kafka."""
    if isinstance(cluster, dict):
        return cluster.get("system", KAFKA)
    return getattr(cluster, "system", KAFKA)


#: A cluster of any system, told apart by ``system``.
AnyCluster = Annotated[
    Annotated[Cluster, Tag(KAFKA)] | Annotated[RocketmqCluster, Tag("rocketmq")],
    Discriminator(
        _system_of,
        custom_error_type="unknown_system",
        custom_error_message="system must be kafka or rocketmq",
    ),
]
