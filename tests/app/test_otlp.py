"""Metrics by OTLP: a real HTTP receiver decodes what arrives, which is what Prometheus is served."""

import gzip
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from lagwise.config.server import OtlpSettings
from lagwise.platform.errors import ConfigError
from lagwise.platform.log_events import ATTRIBUTE
from lagwise_app.server.metrics import otlp
from lagwise_app.server.metrics.documents import MetricsWriter
from lagwise_app.server.metrics.otlp import OtlpSender
from tests.app import test_metrics
from tests.app.test_metrics import NOW, samples, text

pytestmark = pytest.mark.thorough
lake, writer = test_metrics.lake, test_metrics.writer


class Collector:
    """Takes metrics as a collector of OpenTelemetry does; ``status`` is its answer."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[tuple[dict[str, str], ExportMetricsServiceRequest]] = []
        self.arrived = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.requests.append((headers, ExportMetricsServiceRequest.FromString(body)))
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()
                collector.arrived.set()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1/metrics"

    def values(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """Each data point by name and labels."""
        found = {}
        for _, request in self.requests:
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        for point in metric.gauge.data_points:
                            labels = frozenset((one.key, one.value.string_value) for one in point.attributes)
                            value = point.as_int if point.HasField("as_int") else point.as_double
                            key = metric.name, labels
                            assert key not in found, f"sent twice: {key}"
                            found[key] = float(value)
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Collector()
    yield made
    made.close()


def sender(writer: MetricsWriter, collector: Collector, **settings: object) -> OtlpSender:
    return OtlpSender(writer, OtlpSettings.model_validate({"url": collector.url, **settings}), lambda: NOW)


def test_what_is_sent_is_what_prometheus_is_served(
    writer: MetricsWriter, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "POINTS_PER_REQUEST", 100)
    assert sender(writer, collector).send()
    assert len(collector.requests) > 3, "in parts"
    served = {
        (sample.name, frozenset((label, value) for label, value in sample.labels.items() if value)): sample.value
        for sample in samples(text(writer))
    }
    sent = {
        (name, frozenset((label, value.replace("\0", "\ufffd")) for label, value in labels if value)): value
        for (name, labels), value in collector.values().items()
    }
    assert sent.keys() == served.keys()
    assert {key: value for key, value in sent.items() if value != pytest.approx(served[key])} == {}
    _, request = collector.requests[0]
    resource = {one.key: one.value.string_value for one in request.resource_metrics[0].resource.attributes}
    assert resource["service.name"] == "lagwise"
    units = {m.name: m.unit for _, r in collector.requests for m in r.resource_metrics[0].scope_metrics[0].metrics}
    assert units["lagwise_group_lag_seconds"] == "s"
    assert units["lagwise_group_lag_records"] == "{record}"
    assert units["lagwise_group_read_records_per_second"] == "{record}/s"


def test_it_signs_in_with_a_secret_from_a_file(writer: MetricsWriter, collector: Collector, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("Bearer s3cr3t-of-the-collector", encoding="utf-8")
    assert sender(writer, collector, authorization=f"${{file:{secret}}}").send()
    assert collector.requests[0][0]["authorization"] == "Bearer s3cr3t-of-the-collector"
    with pytest.raises(ConfigError, match="nowhere"):
        sender(writer, collector, authorization="${file:/nowhere/secret}")


def test_a_collector_that_refuses_is_logged_once_and_so_is_its_end(
    writer: MetricsWriter, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lagwise")
    its = sender(writer, collector)
    collector.status = 400
    for _ in range(3):
        assert its.send()
    collector.status = 200
    for _ in range(2):
        assert its.send()
    events = [getattr(record, ATTRIBUTE) for record in caplog.records]
    assert events == [{"event": "metrics_not_sent"}, {"event": "metrics_not_sent", "over": True}]


def test_it_sends_until_it_is_stopped_and_nothing_before_the_lake_was_read(
    writer: MetricsWriter, collector: Collector
) -> None:
    unread = MetricsWriter(test_metrics.Lake("/nowhere/lake"), writer.config)
    assert not sender(unread, collector).send()
    assert collector.requests == []
    stop = threading.Event()
    thread = threading.Thread(target=sender(writer, collector).run, args=(stop,))
    thread.start()
    assert collector.arrived.wait(20)
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
