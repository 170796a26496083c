"""Sends Lagwise's own metrics by OTLP: the families that Prometheus is served, as gauges of OpenTelemetry.

The SDK's instruments take one sample at a time and keep it. The columns are there already, so the SDK's data model is
filled from them and given to its exporter.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

import pyarrow as pa
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    Gauge,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.metrics.export import Metric as OtlpMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from lagwise import __version__
from lagwise.config.server import OtlpSettings
from lagwise.platform.log_events import LogEvent
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.secrets import resolve, resolve_address
from lagwise_app.server.metrics.documents import MetricsWriter, current
from lagwise_app.server.metrics.exposition import Metric, as_numbers
from lagwise_app.server.metrics.own_metrics import OWN_METRICS

log = logging.getLogger("lagwise.server")

#: Data points of one request: about 1 MB, a quarter of what servers often take at most.
POINTS_PER_REQUEST = 10_000
#: How often to look whether the lake has been read, until it has.
_UNTIL_READ_SECONDS = 1.0
_UNITS = {"_per_second": "{record}/s", "_seconds": "s", "_records": "{record}"}


def metrics_data(metrics: Iterable[Metric], tables: Mapping[str, pa.Table], now: datetime) -> MetricsData:
    """Families with their samples at a moment. A family without any sample is left out."""
    at = int(now.timestamp()) * 1_000_000_000 + now.microsecond * 1_000
    found = [
        OtlpMetric(metric.name, metric.help, _unit(metric.name), Gauge(points))
        for metric in metrics
        if (points := list(_points(metric, tables[metric.rows], at)))
    ]
    resource = Resource({"service.name": "lagwise", "service.version": __version__})
    scope = InstrumentationScope("lagwise", __version__)
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, found, "")], "")])


def _points(metric: Metric, table: pa.Table, at: int) -> Iterator[NumberDataPoint]:
    values = [1] * table.num_rows if metric.value is None else as_numbers(table[metric.value]).to_pylist()
    columns = [table[column].cast(pa.string()).fill_null("").to_pylist() for column in metric.labels.values()]
    for value, *labels in zip(values, *columns, strict=True):
        if value is not None:
            yield NumberDataPoint(dict(zip(metric.labels, labels, strict=True)), 0, at, value)


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "1")


class OtlpSender:
    """Sends at each interval what the writer has. Raises ConfigError where a secret of the settings cannot be read."""

    def __init__(
        self, writer: MetricsWriter, settings: OtlpSettings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._writer, self._settings, self._clock = writer, settings, clock
        self._log_throttle = LogThrottle(log)
        # The exporter has several lines for each attempt that fails; here it is one for all of them.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._exporter = OTLPMetricExporter(
            endpoint=resolve_address(settings.url),
            headers={} if settings.authorization is None else {"Authorization": resolve(settings.authorization)},
            timeout=settings.timeout_seconds,
            max_export_batch_size=POINTS_PER_REQUEST,
        )

    def run(self, stop: threading.Event) -> None:
        """Send until ``stop`` is set. What cannot be sent is logged once, and the next interval tries again."""
        try:
            while not stop.wait(self._settings.interval_seconds if self.send() else _UNTIL_READ_SECONDS):
                pass
        finally:
            self._exporter.shutdown()

    def send(self) -> bool:
        """Send once; whether there was anything to be sent, and not whether it was accepted."""
        now = self._clock()
        documents = current(self._writer, now)
        if documents is None:
            return False
        try:
            result = self._exporter.export(metrics_data(OWN_METRICS, documents.tables, now))
            trouble = "" if result is MetricExportResult.SUCCESS else "not accepted"
        except Exception as error:  # a defect, in the exporter or here, must not end what else this process serves
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            line = f"metrics cannot be sent to {self._settings.url} ({trouble}); the next interval tries again"
            self._log_throttle.warn(LogEvent.METRICS_NOT_SENT, line, same=trouble)
        else:
            self._log_throttle.clear(LogEvent.METRICS_NOT_SENT, "metrics are sent by OTLP again")
        return True
