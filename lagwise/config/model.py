"""The settings: one YAML file, every key also an environment variable, everything checked before anything starts.

The models below are the only place where a setting is declared. The reference page in ``docs/reference``, the
environment variables (``LAGWISE_`` plus the key's path joined by two underscores, list positions as numbers, for
example ``LAGWISE_CLUSTERS__0__BOOTSTRAP``) and the error messages are derived from them.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from lagwise.config.base import Settings as _Settings
from lagwise.config.channels import AnyChannel
from lagwise.config.external_offsets import OffsetsFrom
from lagwise.config.name_filter import NameFilter
from lagwise.config.objectives import WithObjectives
from lagwise.config.operating import Grouping, Heartbeat, MaintenanceWindow, SignIn
from lagwise.config.rocketmq import RocketmqCluster
from lagwise.config.values import Holds, Memory, Name, Reference, RunbookAddress, Seconds
from lagwise.platform.secrets import SECRET_KEYS, is_reference, is_secret_key, redact, resolve_map


class SideTopicSettings(_Settings):
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


class Cluster(WithObjectives):
    """One Kafka cluster to watch."""

    system: Literal["kafka"] = "kafka"
    """What the cluster runs."""
    name: Name = "kafka"
    """How the cluster is called in tables, pages and alerts."""
    bootstrap: Annotated[str, Field(min_length=1)]
    """Bootstrap servers, `host:port[,host:port…]`."""
    librdkafka: Annotated[dict[str, str | int | float | bool], Holds.MAP] = {}
    """Passed through to librdkafka (`security.protocol`, `sasl.mechanism`, `ssl.ca.location`, …). Secrets must be \
references: `${env:NAME}` or `${file:/path}`."""
    groups: NameFilter = NameFilter()
    """Which groups are watched."""
    side_topics: SideTopicSettings = SideTopicSettings()
    """Retry and dead-letter topics of the topics that watched groups read."""
    interval_seconds: Annotated[float, Field(ge=1, le=3600)] = 15.0
    """How often the cluster is sampled."""
    timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 10.0
    """How long one request to the cluster may take."""
    look_past_markers: bool = True
    """Whether the next record is fetched where a group stands still just before the end, to tell unread records from \
commit markers of transactions and gaps of compaction, which take offsets too. Needs Read on those topics; without it \
they count as lag."""
    offsets_topic: bool = False
    """Whether the topic `__consumer_offsets` is followed too: exact rebalances with causes, rewinds, commit times. \
Needs Read on that topic."""
    offsets_from: tuple[OffsetsFrom, ...] = ()
    """Where offsets on the cluster's topics are kept that are not committed to Kafka: see \
[docs/external-offsets.md](../external-offsets.md)."""

    @field_validator("librdkafka")
    @classmethod
    def _secrets_are_references(cls, settings: dict[str, str | int | float | bool]) -> dict[str, Any]:
        for key, value in settings.items():
            if key in SECRET_KEYS and not is_reference(str(value)):
                raise ValueError(
                    f"{key} is a secret: write ${{env:NAME}} or ${{file:/path}} here, not the secret itself"
                )
        return settings

    @field_validator("offsets_from")
    @classmethod
    def _sources_have_names(cls, sources: tuple[OffsetsFrom, ...]) -> tuple[OffsetsFrom, ...]:
        names = [source.name for source in sources]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"the name {twice[0]!r} is given twice")
        return sources


def _system_of(cluster: Any) -> Any:
    """What tells which kind of cluster an entry is; without it, Kafka."""
    return cluster.get("system", "kafka") if isinstance(cluster, dict) else getattr(cluster, "system", "kafka")


#: A cluster of any system.
AnyCluster = Annotated[
    Annotated[Cluster, Tag("kafka")] | Annotated[RocketmqCluster, Tag("rocketmq")],
    Discriminator(
        _system_of, custom_error_type="unknown_system", custom_error_message="system must be kafka or rocketmq"
    ),
]


class SparkSettings(_Settings):
    """The Spark session of the analysis."""

    master: str = "local[*]"
    """Any Spark master: `local[*]`, `spark://host:7077`, `yarn`, `k8s://…`."""
    driver_memory: Memory = "1g"
    """Heap of the driver, which in local mode is all of Spark."""
    ivy_dir: Path | None = None
    """Where Spark keeps the Delta jars it resolves; null is a folder of Lagwise's own in the user's cache."""
    conf: Annotated[dict[str, str], Holds.MAP] = {}
    """Further Spark settings, passed through. Write secrets as `${env:NAME}` or `${file:/path}`: the JVM gets them by \
a file that only this account can read. What executors have on their command lines \
(`spark.executor.extraJavaOptions`) may not hold a secret."""

    @field_validator("conf")
    @classmethod
    def _executors_show_no_secret(cls, conf: dict[str, str]) -> dict[str, str]:
        for key in ("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions"):
            value = conf.get(key, "")
            if is_reference(value) or redact(value) != value:
                raise ValueError(
                    f"{key} stands on the executors' command lines, where others can read it: give them secrets by "
                    "spark.executorEnv.NAME or a file"
                )
        return conf


class ForecastSettings(_Settings):
    """The forecast of what topics will be sent."""

    horizon_days: Annotated[int, Field(ge=7, le=730)] = 90
    """How far ahead is planned. The highest rate to expect is that of the last week before then."""
    every_hours: Annotated[int, Field(ge=1)] = 24
    """How old the forecast of a topic becomes before it is made anew; that of one with too little history, an hour."""
    topics_per_round: Annotated[int, Field(ge=1)] = 50
    """How many topics are forecast after one round at most, the stalest first (hundredths of a second each)."""


class NodeSize(_Settings):
    """What the nodes of some groups are like."""

    groups: tuple[str, ...] = (".*",)
    """Groups whose whole name one of these regular expressions matches."""
    cores: Annotated[float, Field(ge=0.01, le=4096)]
    """Cores of one node, or its CPU limit."""


class CapacitySettings(_Settings):
    """Capacity verdicts and advice."""

    target_utilisation: Annotated[float, Field(ge=0.01, le=1)] = 0.7
    """How much of what a group can do its demand may use."""
    nodes: tuple[NodeSize, ...] = ()
    """What nodes are like; the first entry that names a group counts. Without one it is what a probe tells."""

    def cores_of(self, group: str) -> float | None:
        """Cores of a node of this group; None is not known."""
        for node in self.nodes:
            if any(re.fullmatch(pattern, group, re.DOTALL) for pattern in node.groups):
                return node.cores
        return None


class AnalysisSettings(_Settings):
    """The analysis, and what its verdicts go by."""

    interval_seconds: Seconds = 15.0
    """How often the history is judged."""
    risk_horizon_seconds: Seconds = 6 * 3600.0
    """`at_risk` is a loss that will happen within this time."""
    minimum_span_seconds: Seconds = 60.0
    """A trend is judged on at least this much time; before that a group with lag is `unknown: too_few_samples`."""
    forecast: ForecastSettings = ForecastSettings()
    """The forecast of what topics will be sent."""
    capacity: CapacitySettings = CapacitySettings()
    """Capacity verdicts and advice."""
    spark: SparkSettings = SparkSettings()
    """The Spark session."""


class RetentionSettings(_Settings):
    """How long the lake keeps what. The present state is not subject to it."""

    raw_days: Annotated[int, Field(ge=1)] = 2
    """Samples as they were read."""
    minutes_days: Annotated[int, Field(ge=1)] = 7
    """Minute statistics and watermark history; `lag_seconds` is exact as far back as this."""
    demand_days: Annotated[int, Field(ge=14)] = 400
    """What each topic was sent, by the hour: what forecasts are made of."""
    history_days: Annotated[int, Field(ge=1)] = 90
    """Group history, status changes, events, topics, and the health of collector and analysis."""


class LakeSettings(_Settings):
    """The Delta tables."""

    storage_options: Annotated[dict[str, str], Holds.MAP] = {}
    """Passed through to the object store (credentials as `${env:NAME}` or `${file:/path}`)."""
    retention: RetentionSettings = RetentionSettings()
    """How long the lake keeps what."""
    maintenance_interval_seconds: Seconds = 600.0
    """How often small files are compacted and old days deleted (by the analysis process, the tables' one owner)."""

    @field_validator("storage_options")
    @classmethod
    def _secrets_are_references(cls, options: dict[str, str]) -> dict[str, str]:
        for key, value in options.items():
            if is_secret_key(key) and not is_reference(value):
                raise ValueError(
                    f"{key} is a secret: write ${{env:NAME}} or ${{file:/path}} here, not the secret itself"
                )
        return options

    def resolved_storage_options(self) -> dict[str, str]:
        """The storage options with the secrets themselves: to be handed on, never shown. Raises ConfigError."""
        return resolve_map(self.storage_options)


class AlertSettings(_Settings):
    """Alerts and where they go."""

    interval_seconds: Seconds = 5.0
    """How often the rules are evaluated and the outbox is looked at."""
    rules_file: Path | None = None
    """YAML file of rules; null uses the rules that come with Lagwise."""
    channels: tuple[AnyChannel, ...] = ()
    """Receivers. Without any, alerts are still decided, kept and shown."""
    dashboard_url: str = "http://127.0.0.1:8501"
    """Address of the dashboard, for the links in alerts. Default: that of `dashboard.host` and `dashboard.port`."""
    grouping: Grouping = Grouping()
    """When many messages become one."""
    maintenance: tuple[MaintenanceWindow, ...] = ()
    """Times at which nobody is told of some groups."""
    heartbeat: Heartbeat | None = None
    """The dead man's switch; null is none."""

    @field_validator("channels", mode="before")
    @classmethod
    def _are_webhooks_unless_they_say(cls, channels: Any) -> Any:
        if not isinstance(channels, list | tuple):
            return channels
        return [{"type": "webhook", **c} if isinstance(c, dict) else c for c in channels]


class DashboardSettings(_Settings):
    """The dashboard's server."""

    host: str = "127.0.0.1"
    """Address to listen on. Without `sign_in`, whoever reaches it can read all of it: expose it only behind something \
that asks who it is."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    """Port to listen on; 0 takes a free one."""
    refresh_seconds: Annotated[float, Field(ge=2)] = 15.0
    """How often an open page looks for new data."""
    sign_in: SignIn | None = None
    """Sign-in with OpenID Connect; null is none: then a browser acts only if it opens the page on the machine that \
serves it, on loopback and without a proxy, and everybody else only looks."""
    runbook_url: RunbookAddress | None = None
    """Where your people wrote down what to do: every group's page links to it. `{cluster}`, `{group}`, `{topic}`, \
`{status}` and `{reason}` in it are replaced by the group's own, as in `https://wiki.example/lag/{status}?group={group}`."""


class ScalingSettings(_Settings):
    """The endpoint that autoscalers ask for replicas."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port to listen on; null is off."""
    token: Reference | None = None
    """What callers must send as `Authorization: Bearer …`, as a reference `${env:NAME}` or `${file:/path}`; null asks \
for none."""
    stale_after_seconds: Seconds = 300.0
    """Older verdicts than this are not acted on: the answer is an error, at which autoscalers leave alone what runs."""


class Config(_Settings):
    """Everything Lagwise can be told."""

    data: Annotated[str, Field(min_length=1)] = "./lagwise-data"
    """Where the lake is: a local folder or a URI (`s3://…`, `abfss://…`, `hdfs://…`)."""
    state_dir: Path | None = None
    """Local folder for logs, the spool and the default database, made for this account alone (mode 0700); null is the \
data folder, or `./lagwise-data` where that is a URI. If other accounts of the machine are to read the lake, give it a \
folder of its own."""
    database: Annotated[str, Holds.DATABASE] | None = None
    """SQLAlchemy URL of the operational database (alerts, deliveries); null is SQLite in the state folder. May be a \
reference `${env:NAME}` or `${file:/path}`."""
    clusters: tuple[AnyCluster, ...] = ()
    """The clusters to watch."""
    lake: LakeSettings = LakeSettings()
    """The Delta tables."""
    analysis: AnalysisSettings = AnalysisSettings()
    """The analysis."""
    alerts: AlertSettings = AlertSettings()
    """Alerts."""
    dashboard: DashboardSettings = DashboardSettings()
    """The dashboard."""
    scaling: ScalingSettings = ScalingSettings()
    """The endpoint that autoscalers ask for replicas."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> "Config":
        for what, names in (
            ("clusters", [c.name for c in self.clusters]),
            ("alerts.channels", [c.name for c in self.alerts.channels]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(f"{what}: the name {twice[0]!r} is given twice")
        return self

    @property
    def data_is_remote(self) -> bool:
        return "://" in self.data and not self.data.startswith("file://")

    @property
    def lake_uri(self) -> str:
        """URI of the lake; an absolute path where it is local."""
        if self.data_is_remote:
            return self.data.rstrip("/") + "/lake"
        return str(Path(self.data.removeprefix("file://")).expanduser().resolve() / "lake")

    @property
    def state(self) -> Path:
        """The local folder for logs, spool and default database, absolute."""
        if self.state_dir is not None:
            return self.state_dir.expanduser().resolve()
        return (
            Path("./lagwise-data" if self.data_is_remote else self.data.removeprefix("file://")).expanduser().resolve()
        )

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL of the operational database; a reference is not resolved here."""
        return self.database or f"sqlite:///{self.state / 'lagwise.db'}"
