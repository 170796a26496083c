"""Kafka clusters in the settings."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from lagwise.config.base import Settings, WatchedCluster
from lagwise.config.external_offsets import ExternalOffsetSource
from lagwise.config.values import Name, SecretPart, check_references, check_unique, compiled
from lagwise.platform.secrets import SECRET_KEYS


class SideTopicSettings(Settings):
    """How retry and dead-letter topics are recognised: regular expressions that match the whole topic name, with the
    name of the main topic as their first group."""

    retry: tuple[str, ...] = (r"(.+?)[-._]retry([-._0-9].*)?",)
    """Names of retry topics, whose records are processed again."""
    dead_letter: tuple[str, ...] = (r"(?i)(.+?)([-._]retry([-._][^.]*?)?)?[-._](dlt|dlq|dead[-._]?letters?)",)
    """Names of dead-letter topics. A name that matches both lists is a dead-letter topic."""

    @field_validator("retry", "dead_letter")
    @classmethod
    def _names_the_main_topic(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if not compiled(pattern).groups:
                raise ValueError(f"{pattern!r} has no group for the name of the main topic, as in (.+)-retry")
        return patterns


class Cluster(WatchedCluster):
    """One Kafka cluster to watch."""

    system: Literal["kafka"] = "kafka"
    """The system that the cluster runs."""
    name: Name = "kafka"
    """Name of the cluster in tables, on pages and in alerts."""
    bootstrap: Annotated[str, Field(min_length=1)]
    """Bootstrap servers, `host:port[,host:port…]`."""
    librdkafka: Annotated[dict[str, str | int | float | bool], SecretPart.MAP] = {}
    """Settings passed to librdkafka (`security.protocol`, `sasl.mechanism`, `ssl.ca.location`, …). Secrets must be \
references: `${env:NAME}` or `${file:/path}`."""
    oauth_token_function: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    """Python function, `package.module:function`, that makes the tokens of SASL/OAUTHBEARER, as signers of cloud \
providers do; null: librdkafka's own ways. [What it gets and returns](../guides/credentials.md#token-function)."""
    side_topics: SideTopicSettings = SideTopicSettings()
    """Retry and dead-letter topics of the topics that watched groups read."""
    skip_control_records: bool = True
    """Fetch the next record when a group stands still just before the end, to distinguish unread records from control \
records of transactions and gaps of compaction, which also take offsets. Needs Read on those topics. If false, \
control records and gaps count as lag."""
    offsets_topic: bool = False
    """Read the topic `__consumer_offsets` too. It gives exact rebalances with their causes, rewinds and commit times. \
Needs Read on that topic."""
    external_offsets: tuple[ExternalOffsetSource, ...] = ()
    """Sources of offsets on the cluster's topics that are not committed to Kafka: see \
[docs/external-offsets.md](../external-offsets.md)."""

    @field_validator("librdkafka")
    @classmethod
    def _secrets_are_references(cls, settings: dict[str, str | int | float | bool]) -> dict[str, Any]:
        check_references(settings, SECRET_KEYS.__contains__)
        return settings

    @field_validator("external_offsets")
    @classmethod
    def _sources_have_names(cls, sources: tuple[ExternalOffsetSource, ...]) -> tuple[ExternalOffsetSource, ...]:
        check_unique([source.name for source in sources])
        return sources
