"""The reader process of one cluster: requests on stdin, answers on stdout.

A request is one JSON line. The first line is the task: what to read, with the cluster's settings (references to
secrets, never secrets). An answer is one JSON line, followed by as many bytes as its key ``bytes`` says. The process
ends when stdin does.
"""

import gc
import json
import logging
import os
import signal
import sys
from dataclasses import asdict
from typing import Any, BinaryIO

import pyarrow as pa

from lagwise.platform.logs import clean, redact_uncaught_errors
from lagwise_collectors import snapshot_format
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.source_of_cluster import ReaderTask, reader_of_task


def main() -> int:
    """Serve requests until stdin ends."""
    redact_uncaught_errors()
    # A Ctrl-C in a terminal reaches the whole process group; this process ends when its parent closes stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = _private_stdout()
    records = _Records()
    root = logging.getLogger()
    root.addHandler(records)
    logging.getLogger("lagwise").setLevel(logging.DEBUG)  # the parent decides what is shown
    # A sample makes hundreds of thousands of objects and hardly any reference cycles. The garbage collector would walk
    # over all of them again and again, so it runs between samples only.
    gc.disable()
    requests = sys.stdin.buffer
    source: Any = reader_of_task(ReaderTask.model_validate_json(requests.readline()))
    gc.freeze()
    for line in requests:
        request = json.loads(line)
        body = b""
        answer: dict[str, Any] = {}
        match request["request"]:
            case "collect":
                body = _bytes(source.collect())
            case "take":
                snapshot, answer["state"] = source.take(request["topics"])
                body = _bytes(snapshot)
            case "fetch":
                answer["found"] = source.fetched(request["positions"])
            case "acknowledge":
                source.acknowledge()
            case "check":
                answer["checks"] = [asdict(check) for check in source.check()]
            case unknown:
                raise ValueError(f"unknown request {unknown!r}")
        answers.write(json.dumps({**answer, "log": records.take(), "bytes": len(body)}).encode() + b"\n")
        answers.write(body)
        answers.flush()
        del body, answer
        gc.collect()
        gc.freeze()
    source.close()
    return 0


def _bytes(snapshot: Snapshot) -> bytes:
    sink = pa.BufferOutputStream()
    snapshot_format.write(sink, snapshot)
    written: bytes = sink.getvalue().to_pybytes()
    return written


class _Records(logging.Handler):
    """Log records for the parent, which has the handlers."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[tuple[int, str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append((record.levelno, record.name, clean(record.getMessage())))

    def take(self) -> list[tuple[int, str, str]]:
        taken, self._records = self._records, []
        return taken


def _private_stdout() -> BinaryIO:
    """The real stdout for answers alone; whatever else prints goes to stderr."""
    private = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return private


if __name__ == "__main__":
    sys.exit(main())
