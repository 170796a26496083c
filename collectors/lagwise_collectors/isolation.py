"""A source in a process of its own, because librdkafka can take its process down with it.

Seen with confluent-kafka 2.16.1 when a broker restarts, a coordinator moves, or a request times out: a segmentation
fault in ``rd_kafka_handle_OffsetFetch`` on NOT_COORDINATOR, where an admin client has no consumer group to look the
coordinator up for, and a failed assertion in ``rd_kafka_enq_once_del_source_return`` when DescribeConsumerGroups times
out. Here both cost one reader process: the sample is tried again with a new one, and if that fails too, it is a sample
with an error. The same holds for a reader that hangs.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from lagwise.config import Cluster
from lagwise.errors import ClusterError
from lagwise.leash import leashed
from lagwise.logs import clean
from lagwise.tables.raw import SAMPLES
from lagwise_collectors import wire
from lagwise_collectors.protocol import Check, ErrorTally, Snapshot, new_sample_id, run_row
from lagwise_collectors.sources import system_of

log = logging.getLogger("lagwise.collectors")

#: A sample has this many steps that can each take the cluster's timeout.
_STEPS = 8
_GRACE_SECONDS = 15.0
_LAST_WORDS = 20


class Stopped(ClusterError):
    """The source was abandoned while it was being asked."""


class ReaderLost(ClusterError):
    """The reader process ended or hung before it had answered."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class IsolatedSource:
    """Reads a cluster through a process of its own, started at the first request and again whenever it was lost.

    To be used from one thread, which must live as long as the process may (see :mod:`lagwise.leash`).
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        hang_seconds: float | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._hang_seconds = hang_seconds or _STEPS * (cluster.timeout_seconds + 2) + _GRACE_SECONDS
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._abandoned = False
        self._said: deque[str] = deque(maxlen=_LAST_WORDS)

    @property
    def pid(self) -> int | None:
        """Process id of the reader; None while there is none."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def collect(self) -> Snapshot:
        """One sample. A reader that crashes is replaced and asked once more; a second crash is the sample's error.

        Raises Stopped if the source was abandoned meanwhile.
        """
        started_at, started = self._clock(), time.monotonic()
        errors = ErrorTally()
        while True:
            try:
                _, body = self._ask("collect")
                snapshot = wire.read(wire.buffer(body))
            except (ReaderLost, wire.BrokenSnapshot) as lost:
                kind = lost.kind if isinstance(lost, ReaderLost) else "reader_crashed"
                self.close()
                errors.note(kind, str(lost))
                if kind == "reader_crashed" and errors.counts[kind] == 1:
                    continue
                return self._failed(started_at, time.monotonic() - started, errors)
            return snapshot.with_errors(errors)

    def check(self) -> list[Check]:
        """The cluster's checks; one failed check where the reader was lost."""
        try:
            answer, _ = self._ask("check")
        except ReaderLost as lost:
            self.close()
            return [Check("reader", False, str(lost), advice="try again; if it persists, report it as a bug")]
        return [Check(**check) for check in answer["checks"]]

    def abandon(self) -> None:
        """End the reader process for good, from another thread: whoever waits for it gets Stopped."""
        self._abandoned = True
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the reader process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # a request that was never read cannot be flushed
                    pipe.close()

    def _ask(self, what: str) -> tuple[dict[str, Any], bytes]:
        """Send a request and read its answer; the answer's log records go to this process's logging."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        hung = threading.Event()

        def end_it() -> None:
            hung.set()
            process.kill()

        watchdog = threading.Timer(self._hang_seconds, end_it)
        watchdog.daemon = True
        watchdog.start()
        try:
            process.stdin.write(json.dumps({"do": what}).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
            body = process.stdout.read(answer.get("bytes", 0))
        except (OSError, ValueError) as error:
            raise self._lost(process, hung.is_set()) from error
        finally:
            watchdog.cancel()
        if not answer or len(body) < answer["bytes"]:
            raise self._lost(process, hung.is_set())
        for level, name, message in answer["log"]:
            logging.getLogger(name).log(level, "%s", message)
        return answer, body

    def _lost(self, process: subprocess.Popen[bytes], hung: bool) -> ClusterError:
        if self._abandoned:
            return Stopped("the collector is stopping")
        if hung:
            return ReaderLost("reader_hung", f"the reader process gave no answer for {self._hang_seconds:g} s")
        process.kill()
        code = process.wait()
        ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        words = self._said[-1] if self._said else "it left no word"
        return ReaderLost("reader_crashed", clean(f"the reader process {ended} ({words})"))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._abandoned:
            raise Stopped("the collector is stopping")
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._said = deque(maxlen=_LAST_WORDS)
        try:
            process = subprocess.Popen(
                leashed([sys.executable, "-P", "-m", "lagwise_collectors.worker"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
            )
        except OSError as error:  # no memory, too many processes
            raise ReaderLost("reader_crashed", f"the reader process cannot be started: {error.strerror}") from error
        assert process.stdin is not None
        threading.Thread(target=_listen, args=(process, self._said), daemon=True).start()
        with contextlib.suppress(OSError):  # it ended at once: the request that follows finds that out
            process.stdin.write(self._cluster.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        self._process = process
        return process

    def _failed(self, started_at: datetime, wall_seconds: float, errors: ErrorTally) -> Snapshot:
        sample_id = new_sample_id(started_at)
        row = run_row(
            sample_id=sample_id,
            cluster=self._cluster.name,
            system=system_of(self._cluster),
            started_at=started_at,
            finished_at=self._clock(),
            interval_seconds=self._cluster.interval_seconds,
            wall_seconds=wall_seconds,
            cpu_seconds=0.0,
            errors=errors,
        )
        return Snapshot(self._cluster.name, sample_id, {SAMPLES.name: row})


def _listen(process: subprocess.Popen[bytes], said: deque[str]) -> None:
    """Keep what the process says on stderr: the words of a dying C library. Also keeps its pipe from filling up."""
    assert process.stderr is not None
    with contextlib.suppress(ValueError, OSError):  # closed under our feet when the process is given up
        for line in process.stderr:
            text = clean(line.decode(errors="replace").strip())
            if text:
                said.append(text)
                log.debug("reader %d: %s", process.pid, text)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        # What can be imported here can be imported there, also where the tests extended the path.
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        # NumPy comes along with pyarrow; its threads would spin for nothing.
        "OPENBLAS_NUM_THREADS": "1",
    }
