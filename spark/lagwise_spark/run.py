"""The analysis process: one Spark, rounds in step with the collector, and between them forecasts and maintenance of the
lake."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyspark import SparkContext

from lagwise.config import Config
from lagwise.domain.humanise import plural
from lagwise.operational.engine import open_engine
from lagwise.operational.heartbeats import beating
from lagwise.operational.leadership import Leadership, NotLeader
from lagwise.operational.lease import Lease
from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import LagwiseError, LakeError
from lagwise.platform.health import ANALYSIS, Heart
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise.platform.program import program
from lagwise.tables import ALL_TABLES
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.maintenance import maintain
from lagwise.tables.raw import SAMPLES
from lagwise.tables.repair import repair_cause, repairing
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.tick import TickCost, tick
from lagwise_spark.start import start_spark
from lagwise_spark.tasks.error_text import reason_of

_LOG = logging.getLogger("lagwise.spark")

#: Name of the last analysis's hold, which is kept in the table of its rounds in the lake.
_HOLD = "lagwise-analysis-hold"
#: How often a waiting process asks whether it may run the analysis.
_WAIT_SECONDS = 2.0
#: A process that has just started judges first: on two slow cores forecasts would delay its first rounds.
_FIRST_FORECASTS_AFTER_SECONDS = 300.0
#: Capacity verdicts stand for five minutes, and those made of a first round would know no rates yet.
_FIRST_PLAN_AFTER_SECONDS = 60.0
#: After so long topics are checked again where none was due for a forecast, which each is once an hour.
_NONE_DUE_SECONDS = 300.0
#: After so long forecasts that failed as a whole are tried again.
_FORECASTS_FAILED_SECONDS = 3600.0
#: After so long groups are checked again where no capacity verdict was due. These are made of small tables.
_NONE_TO_PLAN_SECONDS = 60.0
#: After so long capacity verdicts that failed as a whole are tried again.
_PLAN_FAILED_SECONDS = 600.0

#: How often to look for a new sample, on a disk and in an object store.
_LOOK_SECONDS, _LOOK_SECONDS_IN_A_STORE = 0.5, 2.0
#: Looking begins after this share of the interval: so a round begins with a sample, and not with the one before.
_LOOK_AFTER = 0.75
#: Other clusters that are sampled at about the same time get so long to write theirs.
_OTHERS_WITHIN_SECONDS = 3.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the analysis works: a lake that takes no write while another process leads."""

    lake: Lake
    leadership: Leadership

    def prepare(self) -> None:
        """Make what does not exist yet, and sign for the writer of the lake. Raises LagwiseError."""
        repairing(self.lake, self._prepare)

    def _prepare(self) -> None:
        self.lake.create(*ALL_TABLES)
        if self.leadership.lease.hold_id is not None:
            self.lake.mark(TICKS, _HOLD, self.leadership.lease.hold_id)


@contextmanager
def _place(config: Config) -> Iterator[_Place]:
    """The place of these settings. Raises ConfigError."""
    lake, marked = (Lake(config.lake_uri, config.lake.resolved_storage_options()) for _ in range(2))
    lake.kept = KeptRows()
    engine = open_engine(config.database_url)
    # By a lake of its own: during a round the other one looks at tables as they were when it began.
    mark = partial(marked.last_transaction, TICKS, _HOLD)
    leadership = Leadership(Lease(engine, "analysis"), "the analysis", _LOG, mark=mark)
    lake.before_writing = leadership.check
    try:
        yield _Place(lake, leadership)
    finally:
        engine.dispose()


def analyze_once(config: Config) -> TickCost:
    """Start Spark, do one round, stop. Raises LagwiseError where there is nothing to analyse or no way to, or another
    process analyses this lake."""
    with _place(config) as place, place.leadership.taken():
        lake = place.lake
        place.prepare()
        context = _spark(config)
        try:
            cost = repairing(lake, lambda: tick(context, lake, config))
            _forecast(context, lake, config)
            _plan(lake, config)
        except LagwiseError:
            raise
        except Exception as error:  # Spark's own errors run over hundreds of lines
            raise LagwiseError(
                f"the analysis failed: {reason_of(error)}", code=code_of_system(error, ErrorCode.PROCESS_FAILED)
            ) from error
        finally:
            context.stop()
    if cost is None:
        raise LagwiseError(
            f"nothing has been collected yet: run `{program()} collect --once` first", code=ErrorCode.NO_RESULTS
        )
    return cost


def analyze_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """Do rounds until stopped. Each begins when a sample arrives about ``analysis.interval_seconds`` after the round
    before, and without one after twice that time.

    A round that fails costs only itself, and is done again after a while: the first of several says so in the log, and
    the one that succeeds after them. The lake is maintained between rounds, because this process is the only one that
    rewrites files: while another one analyses this lake, this one waits, and takes over when that one is gone.
    """
    with beating(state, ANALYSIS, config.database_url) as heart, _place(config) as place:
        place.leadership.start()
        try:
            while _leads(place.leadership, stop, heart):
                if _wait_for_lake(place, config, stop, heart):
                    _analyze(config, place, stop, heart)
        finally:
            place.leadership.stop()


def _leads(leadership: Leadership, stop: threading.Event, heart: Heart) -> bool:
    """Wait until this process leads; False where the end comes first."""
    while not stop.is_set():
        reason, holder = leadership.why_not(), leadership.lease.holder
        if reason is None:
            return True
        heart.beat(f"{reason}; this process waits", unless_by=None if holder is None else holder.process.pid_here)
        stop.wait(_WAIT_SECONDS)
    return False


def _analyze(config: Config, place: _Place, stop: threading.Event, heart: Heart) -> None:
    """Rounds of one Spark, as long as this process leads."""
    lake, leadership = place.lake, place.leadership
    heart.beat("starting Spark")
    context = _spark(config)
    leadership.lost = partial(_cancel_jobs, context)
    heart.beat("Spark is up")
    failures = 0
    maintained_at = time.monotonic()
    forecast_from = maintained_at + _FIRST_FORECASTS_AFTER_SECONDS
    plan_from = maintained_at + _FIRST_PLAN_AFTER_SECONDS
    try:
        while not stop.is_set() and leadership.why_not() is None:
            began = time.monotonic()
            try:
                cost = repairing(lake, lambda: tick(context, lake, config))
                if failures:
                    _LOG.info(
                        "rounds succeed again, after %s that failed",
                        failures,
                        extra=event(LogEvent.ROUND_FAILED, over=True),
                    )
                failures = 0
                heart.beat(line_of(cost))
                if time.monotonic() >= forecast_from:
                    forecast_from = time.monotonic() + _forecast(context, lake, config)
                if time.monotonic() >= plan_from:
                    plan_from = time.monotonic() + _plan(lake, config)
            except Exception as error:  # whatever a round dies of, the next one may succeed
                if leadership.why_not() is not None:
                    break  # it was ended because another process does it now, which has been logged
                failures += 1
                reason = reason_of(error)
                if failures == 1:
                    _LOG.error(
                        "the round failed and is tried again: %s",
                        reason,
                        exc_info=_trace_of(error),
                        extra=event(LogEvent.ROUND_FAILED),
                    )
                heart.beat(f"the last {'round' if failures == 1 else f'{failures} rounds'} failed: {reason}")
            if time.monotonic() - maintained_at >= config.lake.maintenance_interval_seconds and not stop.is_set():
                maintained_at = time.monotonic()
                _maintain(lake, config)
            interval = config.analysis.interval_seconds
            if failures:
                stop.wait(max(0.0, began + interval * min(8, 2 ** (failures - 1)) - time.monotonic()))
            else:
                _await_sample(lake, began, interval, stop, leads=lambda: leadership.why_not() is None)
    finally:
        leadership.lost = lambda: None
        context.stop()


def _await_sample(
    lake: Lake,
    began: float,
    interval: float,
    stop: threading.Event,
    *,
    leads: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait for the time of the next round: when a sample arrives about an interval after the last round ``began``, or
    after two intervals without one. So verdicts are not late by half an interval on average. A round that took longer
    than the interval is followed at once."""
    if clock() >= began + interval:
        return
    stop.wait(max(0.0, began + _LOOK_AFTER * interval - clock()))
    look = _LOOK_SECONDS if lake.is_local else _LOOK_SECONDS_IN_A_STORE
    until, has_come = began + 2 * interval, False
    try:
        known = lake.version(SAMPLES)
        while clock() < until and leads() and not stop.is_set():
            stop.wait(look)
            newest = lake.version(SAMPLES)
            if newest != known and not has_come:
                until = min(until, clock() + _OTHERS_WITHIN_SECONDS)
            elif newest == known and has_come:
                return
            has_come, known = newest != known, newest
    except Exception:  # whatever is wrong with the lake, the round will say it, or repair it
        return


def _cancel_jobs(context: SparkContext) -> None:
    """End what Spark is doing: another process does it now."""
    try:
        context.cancelAllJobs()
    except Exception as error:  # Spark is ending; no job of it can write any more
        _LOG.warning(
            "Spark's jobs could not be cancelled: %s", reason_of(error), extra=event(LogEvent.JOBS_NOT_CANCELLED)
        )


def _wait_for_lake(place: _Place, config: Config, stop: threading.Event, heart: Heart) -> bool:
    """Wait until the lake can be used; False where the end comes first, or another process."""
    log_throttle = LogThrottle(_LOG, remind_after_seconds=None)
    while not stop.is_set():
        try:
            place.prepare()
        except NotLeader:
            return False
        except LakeError as error:
            log_throttle.warn(
                LogEvent.LAKE_UNREADABLE,
                f"{error}; nothing is analysed before it can be used",
                same="lake",
                code=error.code,
            )
            heart.beat(str(error))
        else:
            log_throttle.clear(LogEvent.LAKE_UNREADABLE, "the lake can be used")
            return True
        stop.wait(config.analysis.interval_seconds)
    return False


def _spark(config: Config) -> SparkContext:
    return start_spark(config.analysis.spark, log_file=config.state / "logs" / "spark.log")


def _forecast(context: SparkContext, lake: Lake, config: Config) -> float:
    """Forecast topics that are due; in how many seconds to look again. A failure costs no verdict."""
    from lagwise_spark.jobs.demand import forecast_topics  # imports scipy, which the first verdicts do not need

    began = time.monotonic()
    try:
        topics = repairing(lake, lambda: forecast_topics(context, lake, config.analysis.forecast))
    except Exception as error:  # the round's verdicts are already written, whatever this fails with
        _LOG.error(
            "forecasts failed and will be tried again in an hour: %s",
            reason_of(error),
            exc_info=_trace_of(error),
            extra=event(LogEvent.FORECASTS_FAILED),
        )
        return _FORECASTS_FAILED_SECONDS
    if not topics:
        return _NONE_DUE_SECONDS
    _LOG.info(
        "the demand for %s brought up to date in %.1f s",
        plural(topics, "topic"),
        time.monotonic() - began,
        extra=event(LogEvent.FORECASTS_MADE),
    )
    return 0.0


def _plan(lake: Lake, config: Config) -> float:
    """Judge the capacity of groups that are due; in how many seconds to look again. A failure costs no verdict."""
    from lagwise_spark.jobs.capacity import plan  # not needed for the first verdicts either

    try:
        capacity, objective_of = config.analysis.capacity, config.lag_objective_of
        judged = repairing(lake, lambda: plan(lake, capacity, datetime.now(UTC), objective_of=objective_of))
    except Exception as error:  # the round's verdicts are already written, whatever this fails with
        _LOG.error(
            "capacity was not judged and will be tried again in ten minutes: %s",
            reason_of(error),
            exc_info=_trace_of(error),
            extra=event(LogEvent.CAPACITY_FAILED),
        )
        return _PLAN_FAILED_SECONDS
    return 0.0 if judged else _NONE_TO_PLAN_SECONDS


def _maintain(lake: Lake, config: Config) -> None:
    try:
        repair_cause(lake)
        done = repairing(lake, lambda: maintain(lake, config.lake.retention))
        if done.compacted_files or done.deleted_days:
            _LOG.info("maintenance: %s", done, extra=event(LogEvent.MAINTENANCE_DONE))
    except LagwiseError as error:
        _LOG.error("maintenance failed and will be tried again: %s", error, extra=event(LogEvent.MAINTENANCE_FAILED))


def _trace_of(error: Exception) -> BaseException | None:
    """The trace is worth keeping for what we did not foresee."""
    return None if isinstance(error, LagwiseError) else error


def line_of(cost: TickCost | None) -> str:
    """A round in words, for the heartbeat and the terminal."""
    if cost is None:
        return "nothing has been collected yet"
    changes = f", {plural(cost.status_changes, 'change')}" if cost.status_changes else ""
    return (
        f"{plural(cost.groups, 'group')}, {plural(cost.group_partitions, 'partition')} judged in "
        f"{cost.wall_seconds:.1f} s{changes}"
    )
