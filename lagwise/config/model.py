"""The settings: one YAML file, every key also an environment variable, all checked at the start.

The models below are the only place where a setting is declared. The reference page in ``docs/reference``, the
environment variables (``LAGWISE_`` plus the key's path joined by two underscores, list positions as numbers, for
example ``LAGWISE_CLUSTERS__0__BOOTSTRAP``) and the error messages are derived from them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from lagwise.config.base import DEFAULT_LAG_OBJECTIVE_SECONDS, NameFilter, Settings
from lagwise.config.channels import AnyChannel
from lagwise.config.kafka import Cluster
from lagwise.config.operating import Grouping, Heartbeat, MaintenanceWindow, SignIn
from lagwise.config.rocketmq import RocketmqCluster
from lagwise.config.server import McpSettings, ServerSettings
from lagwise.config.values import (
    IN_DAYS,
    IN_HOURS,
    IN_SECONDS,
    Memory,
    Reference,
    RunbookAddress,
    Seconds,
    SecretPart,
    TimeZoneName,
    check_references,
    check_unique,
)
from lagwise.platform.secrets import is_reference, is_secret_key, redact, resolve_map


def _system_of(cluster: Any) -> Any:
    """The system of an entry of `clusters`; Kafka if it names none."""
    return cluster.get("system", "kafka") if isinstance(cluster, dict) else getattr(cluster, "system", "kafka")


#: A cluster of any system.
AnyCluster = Annotated[
    Annotated[Cluster, Tag("kafka")] | Annotated[RocketmqCluster, Tag("rocketmq")],
    Discriminator(
        _system_of, custom_error_type="unknown_system", custom_error_message="system must be kafka or rocketmq"
    ),
]


class SparkSettings(Settings):
    """The Spark of the analysis."""

    master: str = "local[*]"
    """Any Spark master: `local[*]`, `spark://host:7077`, `yarn`, `k8s://…`."""
    driver_memory: Memory = "1g"
    """Heap of the driver. In local mode that is all of Spark."""
    conf: Annotated[dict[str, str], SecretPart.MAP] = {}
    """Further settings, passed to Spark. Write secrets as `${env:NAME}` or `${file:/path}`: the JVM reads them from a \
file that only this account can read. Options on the command lines of executors (`spark.executor.extraJavaOptions`) \
may not contain a secret."""

    @field_validator("conf")
    @classmethod
    def _executors_show_no_secret(cls, conf: dict[str, str]) -> dict[str, str]:
        for key in ("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions"):
            value = conf.get(key, "")
            if is_reference(value) or redact(value) != value:
                raise ValueError(
                    f"{key} is visible on the executors' command lines: pass secrets to executors in "
                    "spark.executorEnv.NAME or in a file"
                )
        return conf


class ForecastSettings(Settings):
    """The forecast of produce rates."""

    horizon_days: Annotated[int, Field(ge=7, le=730), IN_DAYS] = 90
    """Planning horizon. The highest expected rate is that of the last week before the horizon."""
    interval_hours: Annotated[int, Field(ge=1), IN_HOURS] = 24
    """How often the forecast of a topic is renewed; every hour for a topic with too little history."""
    max_topics_per_round: Annotated[int, Field(ge=1)] = 50
    """At most this many topics are forecast after a round, the oldest forecasts first (some 50 ms each)."""


class NodeSize(Settings):
    """The size of the nodes on which some groups run."""

    groups: NameFilter = NameFilter()
    """Groups that run on such nodes."""
    cores: Annotated[float, Field(ge=0.01, le=4096)]
    """Cores of one node, or its CPU limit."""


class CapacitySettings(Settings):
    """Capacity verdicts and advice."""

    target_utilisation: Annotated[float, Field(ge=0.01, le=1)] = 0.7
    """Share of the capacity of a group that its demand may use."""
    size_by: Literal["objective", "peak"] = "objective"
    """What capacity is judged and sized by. `objective`: the least capacity that keeps the lag objective of the group \
(`lag_objective_seconds` of its cluster) in the recorded minutes and, at the upper end, in the forecast; the peak \
where less than two days are recorded. `peak`: the busiest minute."""
    nodes: tuple[NodeSize, ...] = ()
    """Sizes of nodes. The first entry that selects a group applies. For other groups the probe reports the size."""

    def cores_of(self, group: str) -> float | None:
        """Cores of a node of this group; None if no entry selects it."""
        return next((node.cores for node in self.nodes if node.groups.selects(group)), None)


class AnalysisSettings(Settings):
    """The analysis and the thresholds of its verdicts."""

    interval_seconds: Seconds = 15.0
    """How often the groups are analysed. A round starts with the sample that arrives about this long after the last \
round, or after twice this time if none does."""
    risk_horizon_seconds: Seconds = 6 * 3600.0
    """A group is `at_risk` if it will lose data within this time."""
    minimum_span_seconds: Seconds = 60.0
    """A trend needs at least this much history. With less, a group with lag is `unknown: too_few_samples`."""
    forecast: ForecastSettings = ForecastSettings()
    """The forecast of produce rates."""
    capacity: CapacitySettings = CapacitySettings()
    """Capacity verdicts and advice."""
    spark: SparkSettings = SparkSettings()
    """Where the work of the analysis runs."""


class RetentionSettings(Settings):
    """How long the lake keeps history. The current state is always kept."""

    raw_days: Annotated[int, Field(ge=1), IN_DAYS] = 2
    """Raw samples, as the collector read them."""
    minute_stats_days: Annotated[int, Field(ge=1), IN_DAYS] = 7
    """Statistics by the minute, and watermark history. `lag_seconds` is exact only up to this age."""
    demand_days: Annotated[int, Field(ge=14), IN_DAYS] = 400
    """Produce rates of topics by the hour. Forecasts are made from them."""
    history_days: Annotated[int, Field(ge=1), IN_DAYS] = 90
    """Group history, status changes, events, topics, and the health of the collector and the analysis."""


class LakeSettings(Settings):
    """The Delta tables."""

    storage_options: Annotated[dict[str, str], SecretPart.MAP] = {}
    """Settings passed to the object store (credentials as `${env:NAME}` or `${file:/path}`)."""
    retention: RetentionSettings = RetentionSettings()
    """How long the lake keeps history."""
    maintenance_interval_seconds: Seconds = 600.0
    """How often the analysis process compacts small files and deletes old days."""

    @field_validator("storage_options")
    @classmethod
    def _secrets_are_references(cls, options: dict[str, str]) -> dict[str, str]:
        check_references(options, is_secret_key)
        return options

    def resolved_storage_options(self) -> dict[str, str]:
        """The storage options with secrets resolved: pass them on, never show them. Raises ConfigError."""
        return resolve_map(self.storage_options)


class AlertSettings(Settings):
    """Alerts and their channels."""

    interval_seconds: Seconds = 5.0
    """How often the rules are evaluated and queued messages are sent."""
    rules_file: Path | None = None
    """YAML file of alert rules; null uses the rules that come with Lagwise."""
    channels: tuple[AnyChannel, ...] = ()
    """Channels that alerts are sent to. Without any, alerts are still evaluated, stored and shown."""
    dashboard_url: str = "http://127.0.0.1:8501"
    """Address of the dashboard, for the links in alerts. Default: that of `dashboard.host` and `dashboard.port`."""
    grouping: Grouping = Grouping()
    """When many messages are combined into one."""
    maintenance: tuple[MaintenanceWindow, ...] = ()
    """Times at which alerts of some groups are not sent."""
    heartbeat: Heartbeat | None = None
    """The dead man's switch; null is off."""

    @field_validator("channels", mode="before")
    @classmethod
    def _are_webhooks_unless_they_say(cls, channels: Any) -> Any:
        if not isinstance(channels, list | tuple):
            return channels
        return [{"type": "webhook", **c} if isinstance(c, dict) else c for c in channels]


class DashboardSettings(Settings):
    """The dashboard's server."""

    host: str = "127.0.0.1"
    """Address to listen on. Without `sign_in`, everyone who reaches it can read everything: expose it only behind a \
proxy that authenticates users."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    """Port to listen on; 0 picks a free one."""
    refresh_seconds: Annotated[float, Field(ge=2), IN_SECONDS] = 15.0
    """How often an open page refreshes its data."""
    time_zone: TimeZoneName | None = None
    """Time zone of the team. Pages show times in it unless the reader chooses UTC or that of the browser; null is \
UTC. Exports are always UTC."""
    sign_in: SignIn | None = None
    """Sign-in with OpenID Connect; null is off. Without it, only a browser on the machine that serves the page (on \
loopback, without a proxy) may act on alerts; everyone else may only look."""
    cluster_notes: dict[str, str] = {}
    """What readers must know of a cluster, by its name, as in `load-test: Its numbers are those of a load test`. A \
note stands on every page that may show the cluster, and in the capacity report of its groups."""
    runbook_url: RunbookAddress | None = None
    """Address of your runbook; every group's page links to it. `{cluster}`, `{group}`, `{topic}`, `{status}` and \
`{reason}` in it are replaced by those of the group, as in `https://wiki.example/lag/{status}?group={group}`."""


class ScalingSettings(Settings):
    """What autoscalers are told about replicas, and an endpoint of their own for `lagwise scaling`."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port to listen on; null is off."""
    token: Reference | None = None
    """Token that callers must send as `Authorization: Bearer …`, as a reference `${env:NAME}` or \
`${file:/path}`; null requires none."""
    stale_after_seconds: Seconds = 300.0
    """The answer is an error if the newest verdict is older than this. Autoscalers then leave the replicas as \
they are."""


class Config(Settings):
    """All settings of Lagwise."""

    data: Annotated[str, Field(min_length=1)] = "./lagwise-data"
    """Location of the lake: a local folder or a URI (`s3://…`, `abfss://…`, `hdfs://…`)."""
    state_dir: Path | None = None
    """Local folder for logs, the spool and the default database. Only this account can read it (mode 0700). \
null is the data folder, or `./lagwise-data` if that is a URI. Give it a folder of its own if other accounts \
must read the lake."""
    database: Annotated[str, SecretPart.DATABASE] | None = None
    """SQLAlchemy URL of the operational database (alerts, deliveries); null is SQLite in the state folder. It may be \
a reference `${env:NAME}` or `${file:/path}`."""
    clusters: tuple[AnyCluster, ...] = ()
    """Clusters to watch."""
    lake: LakeSettings = LakeSettings()
    """The Delta tables."""
    analysis: AnalysisSettings = AnalysisSettings()
    """The analysis."""
    alerts: AlertSettings = AlertSettings()
    """Alerts."""
    dashboard: DashboardSettings = DashboardSettings()
    """The dashboard."""
    scaling: ScalingSettings = ScalingSettings()
    """The endpoint that autoscalers ask for the number of replicas."""
    server: ServerSettings = ServerSettings()
    """The HTTP server that other programs ask."""
    mcp: McpSettings = McpSettings()
    """The server of `lagwise mcp --http`, which assistants ask. Tokens and limits are those of `server`."""
    log_format: Literal["text", "json"] = "text"
    """Format of the logs. `json`: one JSON object a line, with stable names of events (docs/logs.md)."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> "Config":
        check_unique([cluster.name for cluster in self.clusters], "clusters: ")
        check_unique([channel.name for channel in self.alerts.channels], "alerts.channels: ")
        return self

    def lag_objective_of(self, cluster: str, group: str) -> float:
        """The lag objective of a group, in seconds; the default where the settings do not name its cluster."""
        own = (c.lag_objective_of(group) for c in self.clusters if c.name == cluster)
        return next(own, DEFAULT_LAG_OBJECTIVE_SECONDS)

    @property
    def data_is_remote(self) -> bool:
        return "://" in self.data and not self.data.startswith("file://")

    @property
    def lake_uri(self) -> str:
        """URI of the lake, or its absolute path if it is local."""
        if self.data_is_remote:
            return self.data.rstrip("/") + "/lake"
        return str(Path(self.data.removeprefix("file://")).expanduser().resolve() / "lake")

    @property
    def state(self) -> Path:
        """The local folder for logs, spool and default database, absolute."""
        folder = "./lagwise-data" if self.data_is_remote else self.data.removeprefix("file://")
        return (self.state_dir or Path(folder)).expanduser().resolve()

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL of the operational database; a reference is not resolved here."""
        return self.database or f"sqlite:///{self.state / 'lagwise.db'}"
