"""What is served: finished documents, written anew by a thread when the lake has something new or rows become stale."""

import gzip
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.config.server import MetricsSettings
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables.duckdb_connection import OUR_MISTAKES
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
    """All documents of one moment."""

    by_key: Mapping[Key, Document]
    #: When the first of their rows becomes stale.
    fresh_until: datetime
    #: Samples in all of them.
    samples: int


class MetricsWriter:
    """Keeps the documents current. :attr:`documents` may be read from any thread; :meth:`refresh` is for one thread."""

    def __init__(self, lake: Lake, settings: MetricsSettings) -> None:
        self.settings = settings
        #: None until the lake has been read once.
        self.documents: Documents | None = None
        self._facts = LakeFacts(lake, bool(settings.name_sets), settings.stale_after_seconds)
        self._is_readable = True

    def refresh(self, now: datetime) -> None:
        """Read what is new in the lake, and write the documents if anything is, or if rows have become stale.

        While the lake cannot be read, the documents rest on what was read last, until that is stale.
        """
        was_readable = self._is_readable
        try:
            has_news = self._facts.refresh(now)
            self._is_readable = True
        except OUR_MISTAKES:
            raise
        except (LakeError, duckdb.Error, OSError) as error:
            has_news, self._is_readable = False, False
            if was_readable:
                log.warning(
                    "cannot read the lake, so metrics rest on the last data that was read: %s", clean(in_a_line(error))
                )
        if self._is_readable and not was_readable:
            log.info("the lake can be read again")
        is_due = self.documents is None or now >= self.documents.fresh_until
        if self._facts.tables and (has_news or is_due or was_readable is not self._is_readable):
            self._write(now)

    def _write(self, now: datetime) -> None:
        chosen = choose(self._facts.tables, self.settings, now)
        build = pa.table({"version": [version("lagwise")], "lake_readable": [int(self._is_readable)]})
        texts = dict(_texts({**chosen.tables, "build": build}, chosen, self.settings))
        found = {key: Document(text) for key, text in texts.items()}
        for key, document in (self.documents.by_key if self.documents is not None else {}).items():
            if document.was_compressed and key in found:
                found[key].compressed()  # so that the next scrape need not wait for it
        samples = sum(text.count(b"\n") - text.count(b"\n# ") - 1 for text in texts.values())
        self.documents = Documents(found, chosen.fresh_until, samples)


def _texts(tables: Mapping[str, pa.Table], chosen: Chosen, settings: MetricsSettings) -> list[tuple[Key, bytes]]:
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
    while True:
        try:
            writer.refresh(clock())
        except Exception:
            log.exception("metrics could not be written")
        if stop.wait(CHECK_SECONDS):
            return


def current(writer: MetricsWriter, now: datetime) -> Documents | None:
    """The documents to serve; None where there are none, or where they are so old that the writer must hang."""
    documents = writer.documents
    if documents is None or now > documents.fresh_until + timedelta(seconds=GRACE_SECONDS):
        return None
    return documents
