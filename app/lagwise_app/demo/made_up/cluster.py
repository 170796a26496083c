"""The made-up cluster: its past is written and judged, as any backlog of samples is, and then it goes on."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from lagwise.config import Config
from lagwise.platform.die_with_parent import dying_with_parent
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.tables.store import Lake
from lagwise_app.demo.made_up.samples import MadeUpSamples
from lagwise_app.supervisor.descendants import descendants, end_processes
from lagwise_app.supervisor.effective_settings import child_environment, write_settings
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.lake_delivery.sink import Sink
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.pipeline import Pipeline
from lagwise_collectors.protocol import Check, Snapshot
from lagwise_sandbox.made_up.groups import CLUSTER_NAME
from lagwise_sandbox.made_up.offsets import PAST_MINUTES
from lagwise_sandbox.server_process import last_words

_SETTINGS_FILE = "made-up.yaml"
_LOG_FILE = "made-up.log"
_POLL_SECONDS = 0.2
_JOIN_SECONDS = 5.0
#: No sample is written before the time at which it ends.
_TAKEN_AFTER = timedelta(milliseconds=100)


class MadeUpCluster:
    """A thread that has the past written, has ``lagwise analyze --once`` judge it, and then takes a sample a minute.

    No other process may analyse the lake before :meth:`await_judged` returns: a round that knows of other clusters
    looks for new samples of the last days only. A context manager: leaving it ends the thread and what it has started.
    ``config`` are the settings of the lake and the analysis, ``now`` is when the past ends.
    """

    def __init__(self, config: Config, now: datetime) -> None:
        self._config = config
        self._now = now
        self._stop, self._judged = threading.Event(), threading.Event()
        self._doing = "writing five weeks of made-up samples"
        self._failure: LagwiseError | None = None
        self._seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="made-up cluster", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def await_judged(self, progress: Callable[[str], None]) -> float:
        """Wait until the past has been judged. Returns in how many seconds that was done since the start. Raises
        LagwiseError where it failed."""
        said = ""
        while not self._judged.wait(_POLL_SECONDS):
            if self._doing != said:
                said = self._doing
                progress(said)
        self.check()
        return self._seconds

    def check(self) -> None:
        """Raises LagwiseError where the past could not be made, or where no more samples are taken."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        began = time.monotonic()
        try:
            settings = write_settings(self._config, _SETTINGS_FILE)
            self._run_process(["lagwise_app.demo.made_up.past", self._now.isoformat()], settings)
            self._doing = "judging five weeks of made-up samples"
            # A round of the real analysis, with forecasts and verdicts on capacity.
            self._run_process(["lagwise", "analyze", "--once"], settings)
            self._seconds = time.monotonic() - began
            self._judged.set()
            self._doing = "taking made-up samples"
            self._go_on(Lake(self._config.lake_uri))
        except Exception as error:  # whatever it is, the demo says it and ends
            self._failure = LagwiseError(
                f"{self._doing} failed: {error}; --no-past leaves them out", code=ErrorCode.PROCESS_FAILED
            )
            self._failure.__cause__ = error
        finally:
            self._judged.set()

    def _run_process(self, module: Sequence[str], settings: Path) -> None:
        """Run a Python module until it ends, or until this thread is asked to. Raises LagwiseError where it fails."""
        log = self._config.state / "logs" / _LOG_FILE
        log.parent.mkdir(exist_ok=True)
        if self._stop.is_set():
            return
        with log.open("ab") as output:
            # Killed when this thread ends, which waits for it, or with the demo.
            process = subprocess.Popen(
                dying_with_parent([sys.executable, "-P", "-m", *module]),
                env=child_environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        while process.poll() is None:
            if self._stop.wait(_POLL_SECONDS):
                end_processes({psutil.Process(process.pid), *descendants([process.pid])})
                process.wait()
                return
        if process.returncode:
            raise LagwiseError(
                f"{module[0]} ended with {process.returncode}: {last_words(log)} (its log: {log})",
                code=ErrorCode.PROCESS_FAILED,
            )

    def _go_on(self, lake: Lake) -> None:
        """Take each sample when it is due, as a collector does; those that are overdue at once."""
        source = _Generator(MadeUpSamples(self._now), PAST_MINUTES)
        spool = Spool(self._config.state / "spool" / f"cluster-{CLUSTER_NAME}")
        pipeline = Pipeline(CLUSTER_NAME, source, Sink(LakeWriter(lake), spool, CLUSTER_NAME))
        with closing(pipeline):
            while not self._stop.wait(max(0.0, source.wait_seconds(datetime.now(UTC)))):
                pipeline.run()


class _Generator:
    """The source of the made-up cluster: the samples from a number on, one after the other."""

    def __init__(self, samples: MadeUpSamples, number: int) -> None:
        self._samples = samples
        self._number = number

    def wait_seconds(self, now: datetime) -> float:
        """How long it is until the next sample has been taken; less than 0 where it is overdue."""
        return (self._samples.at(self._number) + _TAKEN_AFTER - now).total_seconds()

    def collect(self) -> Snapshot:
        self._number += 1
        return next(self._samples.snapshots(self._number - 1, self._number))

    def check(self) -> list[Check]:
        return []

    def close(self) -> None:
        """There is nothing to close."""
