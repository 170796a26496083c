"""A reader process: client libraries run in it, and it is killed when a request hangs.

librdkafka can crash its whole process. Seen with confluent-kafka 2.16.1 when a broker restarts, a coordinator moves, or
a request times out: a segmentation fault in ``rd_kafka_handle_OffsetFetch`` on NOT_COORDINATOR, where an admin client
has no consumer group to look the coordinator up for, and a failed assertion in ``rd_kafka_enq_once_del_source_return``
when DescribeConsumerGroups times out. Here both cost one reader process.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import Any

import pyarrow as pa

from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.errors import ClusterError
from lagwise.platform.logs import clean
from lagwise_collectors import snapshot_format
from lagwise_collectors.protocol import Snapshot, Trouble
from lagwise_collectors.source_of_cluster import ReaderTask

log = logging.getLogger("lagwise.collectors")

_KEPT_LINES = 20


class ReaderAbandoned(ClusterError):
    """The source was abandoned during a request."""


class ReaderLost(Trouble):
    """The reader process ended or hung before it answered. It is replaced at the next request."""


class ReaderProcess:
    """A process that answers requests. It starts at the first request, and again after it was lost.

    ``task`` is the first line that the process receives (:mod:`lagwise_collectors.reader_process.child_main`). For one
    thread, which must live as long as the process may (:mod:`lagwise.platform.die_with_parent`). A request that takes
    longer than ``hang_seconds`` kills the process.
    """

    def __init__(self, task: ReaderTask, hang_seconds: float) -> None:
        self._task = task
        self._hang_seconds = hang_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._abandoned = False
        self._stderr_lines: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def pid(self) -> int | None:
        """Process id of the reader; None while there is none."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def pids(self) -> list[int]:
        """The process id of the reader, if there is one."""
        return [] if self.pid is None else [self.pid]

    def abandon(self) -> None:
        """End the reader process for good, from another thread; a request under way raises ReaderAbandoned."""
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

    def _ask(self, name: str, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        """Send a request and read its answer; its log records go to this process's log.

        Raises ReaderAbandoned and ReaderLost.
        """
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        hung = threading.Event()

        def kill_hung() -> None:
            hung.set()
            process.kill()

        watchdog = threading.Timer(self._hang_seconds, kill_hung)
        watchdog.daemon = True
        watchdog.start()
        try:
            process.stdin.write(json.dumps({"request": name, **arguments}).encode() + b"\n")
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

    def _ask_snapshot(self, name: str, **arguments: Any) -> tuple[dict[str, Any], Snapshot]:
        """Send a request that is answered by a snapshot. Raises as :meth:`_ask` does."""
        answer, body = self._ask(name, **arguments)
        try:
            return answer, snapshot_format.read(pa.BufferReader(body))
        except snapshot_format.BrokenSnapshot as error:
            self.close()
            raise ReaderLost("reader_crashed", str(error)) from error

    def _lost(self, process: subprocess.Popen[bytes], hung: bool) -> ClusterError:
        if self._abandoned:
            return ReaderAbandoned("the collector is stopping")
        process.kill()
        code = process.wait()
        self.close()
        if hung:
            return ReaderLost(
                "reader_hung", f"the reader process did not answer within {self._hang_seconds:g} s and was killed"
            )
        ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        last_line = self._stderr_lines[-1] if self._stderr_lines else "it wrote nothing to stderr"
        return ReaderLost("reader_crashed", clean(f"the reader process {ended} ({last_line})"))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._abandoned:
            raise ReaderAbandoned("the collector is stopping")
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._stderr_lines = deque(maxlen=_KEPT_LINES)
        try:
            process = subprocess.Popen(
                dying_with_parent([sys.executable, "-P", "-m", "lagwise_collectors.reader_process.child_main"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
            )
        except OSError as error:  # no memory, too many processes
            raise ReaderLost("reader_crashed", f"the reader process cannot be started: {error.strerror}") from error
        assert process.stdin is not None
        threading.Thread(target=_listen, args=(process, self._stderr_lines), daemon=True).start()
        with contextlib.suppress(OSError):  # it ended at once: the request that follows finds that out
            process.stdin.write(self._task.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        self._process = process
        return process


def _listen(process: subprocess.Popen[bytes], lines: deque[str]) -> None:
    """Keep the last lines that the process writes to stderr, such as those of a crashing C library; drain its pipe."""
    assert process.stderr is not None
    with contextlib.suppress(ValueError, OSError):  # the pipe is closed when the process is given up
        for line in process.stderr:
            text = clean(line.decode(errors="replace").strip())
            if text:
                lines.append(text)
                log.debug("reader %d: %s", process.pid, text)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        # The child can import whatever this process can, also where tests extended the path.
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        # NumPy comes with pyarrow; its threads would only spin.
        "OPENBLAS_NUM_THREADS": "1",
    }
