"""Settings of the HTTP server that other programs ask: its address, and what Prometheus scrapes from it."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from lagwise.config.base import Entry, NameFilter, Settings
from lagwise.config.values import IN_SECONDS, HttpAddress, Name, Reference, Seconds, check_unique
from lagwise.config.visibility import Visibility

#: Exporters whose metrics can be served under the same names and labels.
NameSet = Literal["kafka_exporter", "kafka_lag_exporter", "kminion", "burrow"]


class OtlpSettings(Settings):
    """Metrics are also sent to a collector of OpenTelemetry, by OTLP over HTTP. Needs the extra `otlp`."""

    url: HttpAddress
    """Address to which metrics are posted, as in `http://127.0.0.1:4318/v1/metrics`; may be a reference."""
    authorization: Reference | None = None
    """Value of the header `Authorization` (`Bearer …`), as a reference; null sends none."""
    interval_seconds: Annotated[float, Field(ge=5), IN_SECONDS] = 60.0
    """How often all metrics are sent."""
    timeout_seconds: Seconds = 10.0
    """How long one request may take."""


class MetricsSettings(Settings):
    """The metrics for Prometheus."""

    name_sets: tuple[NameSet, ...] = ()
    """Exporters whose metrics are served as well, under their own names and labels, so that existing boards and rules \
go on working. Lagwise's own metrics are always served."""
    groups: NameFilter = NameFilter()
    """Groups that have metrics."""
    max_groups: Annotated[int, Field(ge=1)] = 10_000
    """At most this many groups have metrics, those in trouble first."""
    max_partitions: Annotated[int, Field(ge=0)] = 100_000
    """Metrics by partition are served for at most this many partitions of groups, whole groups, those in trouble \
first; 0 is none. The same holds for partitions of topics."""
    stale_after_seconds: Seconds = 300.0
    """A group whose newest verdict is older than this has no metrics, so that old numbers are not taken for today's. \
At least what the intervals of collector and analysis explain."""
    otlp: OtlpSettings | None = None
    """Lagwise's own metrics, sent to a collector of OpenTelemetry as well; null is off."""


class TokenSettings(Entry):
    """A token for one caller of the HTTP server, which can be limited to clusters and groups."""

    name: Name
    """Name of the caller, for the log and the heartbeat."""
    token: Reference
    """The token, as a reference `${env:NAME}` or `${file:/path}`."""
    role: Literal["viewer", "metrics"] = "viewer"
    """`viewer` may ask everything about the groups that it may see, and fetch metrics if these are all groups; \
`metrics` may only fetch metrics."""
    clusters: NameFilter = NameFilter()
    """Clusters that the caller may see."""
    groups: NameFilter = NameFilter()
    """Groups that the caller may see, in these clusters."""

    @property
    def visibility(self) -> Visibility:
        """What the caller may see."""
        return Visibility(self.clusters, self.groups)

    @model_validator(mode="after")
    def _metrics_are_of_all_groups(self) -> "TokenSettings":
        if self.role == "metrics" and not self.visibility.is_unlimited:
            raise ValueError("metrics are of all groups: a token with the role metrics cannot be limited to some")
        return self


class ServerSettings(Settings):
    """The HTTP server that other programs ask."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port to listen on; null is off."""
    token: Reference | None = None
    """Token that callers must send as `Authorization: Bearer …`, as a reference `${env:NAME}` or \
`${file:/path}`. Whoever sends it may ask for everything. Without it and without `tokens`, none is required: \
everybody may fetch metrics, and programs on this machine may ask for everything else, if the server listens on a \
loopback address."""
    tokens: tuple[TokenSettings, ...] = ()
    """Further tokens, one for each caller, with a role and limits."""
    requests_per_second: Annotated[float, Field(gt=0)] = 200.0
    """Requests that one token, or one address without a token, may send per second in the long run. More are answered \
with 429 and `Retry-After`."""
    burst_requests: Annotated[int, Field(ge=1)] = 2000
    """Requests that it may send at once after a pause."""
    answer_timeout_seconds: Seconds = 10.0
    """How long an answer may take. A longer one becomes an error (503)."""
    metrics: MetricsSettings = MetricsSettings()
    """The metrics for Prometheus."""

    @field_validator("tokens")
    @classmethod
    def _names_are_unique(cls, tokens: tuple[TokenSettings, ...]) -> tuple[TokenSettings, ...]:
        check_unique([one.name for one in tokens])
        return tokens


class McpSettings(Settings):
    """The server that assistants ask over HTTP."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port to listen on, such as 8604; null is off. Needs the extra `mcp`."""
