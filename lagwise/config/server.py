"""Settings of the HTTP server that other programs ask: its address, and what Prometheus scrapes from it."""

from typing import Annotated, Literal

from pydantic import Field

from lagwise.config.base import NameFilter, Settings
from lagwise.config.values import IN_SECONDS, HttpAddress, Reference, Seconds

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


class ServerSettings(Settings):
    """The HTTP server that other programs ask."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port to listen on; null is off."""
    token: Reference | None = None
    """Token that callers must send as `Authorization: Bearer …`, as a reference `${env:NAME}` or \
`${file:/path}`; null requires none."""
    metrics: MetricsSettings = MetricsSettings()
    """The metrics for Prometheus."""
