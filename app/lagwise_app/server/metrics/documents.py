"""What is served: finished documents, written anew by a thread when the lake has something new or rows become stale."""

import gzip
import logging
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lagwise import __version__
from lagwise.config import Config
from lagwise.config.server import MetricsSettings
from lagwise.platform.log_events import LogEvent
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.logs import clean
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.store import Lake
from lagwise_app.server.metrics.chosen import Chosen, choose
from lagwise_app.server.metrics.exposition import END, Metric, text_of
from lagwise_app.server.metrics.lake_facts import LakeFacts
from lagwise_app.server.metrics.name_sets import EXPORTERS
from lagwise_app.server.metrics.own_metrics import OWN_METRICS

log = logging.getLogger("lagwise.server")

#: Time between two looks at whether the lake has something new.
CHECK_SECONDS = 2.0
#: Documents whose rows became stale so long ago are not served: the thread that writes them anew hangs.
GRACE_SECONDS = 30.0
#: A sixth of the default's CPU, for text a third larger.
_GZIP_LEVEL = 1

#: Of what a document is: the name of an exporter, empty for Lagwise's own metrics; and a cluster, empty for all.
Key = tuple[str, str]


class Document:
    """A text, and the same compressed once somebody has asked for that."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._compressed: bytes | None = None
        self._compressing = threading.Lock()

    @property
    def was_compressed(self) -> bool:
        return self._compressed is not None

    def compressed(self) -> bytes:
        """The text as gzip."""
        with self._compressing:
            if self._compressed is None:
                self._compressed = gzip.compress(self.text, _GZIP_LEVEL)
            return self._compressed


@dataclass(frozen=True, slots=True)
class Documents:
    """All documents of one moment, and the tables that they were written from."""

    by_key: Mapping[Key, Document]
    tables: Mapping[str, pa.Table]
    #: When the first of their rows becomes stale.
    fresh_until: datetime
    #: Samples in all of them.
    samples: int


class MetricsWriter:
    """Keeps the documents current. :attr:`documents` may be read from any thread; :meth:`refresh` is for one thread."""

    def __init__(self, lake: Lake, config: Config) -> None:
        self.config = config
        #: None until the verdicts in the lake have been read once.
        self.documents: Documents | None = None
        self._facts = LakeFacts(lake, config)
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)
        #: Of what the documents are written: how often something new had been read, and whether the lake was readable.
        self._written_of: tuple[int, bool] | None = None

    def refresh(self, now: datetime) -> None:
        """Read what is new in the lake, and write the documents if anything is, or if rows have become stale.

        What cannot be read stays what was read last, until that is stale.
        """
        trouble = self._facts.refresh(now)
        if trouble is None:
            self._log_throttle.clear(LogEvent.LAKE_UNREADABLE, "the lake can be read again")
        else:
            why = clean(in_a_line(trouble))
            self._log_throttle.warn(
                LogEvent.LAKE_UNREADABLE,
                f"cannot read the lake, so metrics rest on the last data that was read: {why}",
                same="lake",
            )
        basis = self._facts.readings, trouble is None
        is_due = self.documents is None or now >= self.documents.fresh_until
        if {"groups", "partitions"} <= self._facts.tables.keys() and (basis != self._written_of or is_due):
            self._write(now, is_readable=trouble is None)
            self._written_of = basis

    def _write(self, now: datetime, *, is_readable: bool) -> None:
        build = pa.table({"version": [__version__], "lake_readable": [int(is_readable)]})
        chosen = choose({**self._facts.tables, "build": build}, self.config, now)
        texts = dict(_texts(chosen, self.config.server.metrics))
        found = {key: Document(text) for key, text in texts.items()}
        for key, document in (self.documents.by_key if self.documents is not None else {}).items():
            if document.was_compressed and key in found:
                found[key].compressed()  # so that the next scrape need not wait for it
        samples = sum(text.count(b"\n") - text.count(b"\n# ") - 1 for text in texts.values())
        self.documents = Documents(found, chosen.tables, chosen.fresh_until, samples)


def _texts(chosen: Chosen, settings: MetricsSettings) -> list[tuple[Key, bytes]]:
    tables = chosen.tables
    texts = [(("", ""), text_of(OWN_METRICS, tables) + END)]
    for name in settings.name_sets:
        exporter = EXPORTERS[name]
        if exporter.names_cluster:
            texts.append(((name, ""), text_of(exporter.metrics, tables) + END))
            continue
        for cluster in chosen.clusters:
            texts.append(
                ((name, cluster), text_of(exporter.metrics, _of_cluster(tables, exporter.metrics, cluster)) + END)
            )
    return texts


def _of_cluster(tables: Mapping[str, pa.Table], metrics: tuple[Metric, ...], cluster: str) -> dict[str, pa.Table]:
    """The tables of these metrics, with the rows of one cluster."""
    found = {name: tables[name] for name in {metric.rows for metric in metrics}}
    return {
        name: table.filter(pc.equal(table["cluster"], cluster)) if "cluster" in table.column_names else table
        for name, table in found.items()
    }


def keep_current(
    writer: MetricsWriter, stop: threading.Event, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> None:
    """Refresh until ``stop`` is set. An error that is not the lake's is logged, and the next refresh tries again."""
    log_throttle = LogThrottle(log)
    while True:
        try:
            writer.refresh(clock())
            log_throttle.clear(LogEvent.METRICS_NOT_WRITTEN, "metrics are written again")
        except Exception as error:
            trace = f"metrics could not be written: {traceback.format_exc()}"
            log_throttle.warn(LogEvent.METRICS_NOT_WRITTEN, trace, same=type(error).__name__)
        if stop.wait(CHECK_SECONDS):
            return


def current(writer: MetricsWriter, now: datetime) -> Documents | None:
    """The documents to serve; None where there are none, or where they are so old that the writer must hang."""
    documents = writer.documents
    if documents is None or now > documents.fresh_until + timedelta(seconds=GRACE_SECONDS):
        return None
    return documents
