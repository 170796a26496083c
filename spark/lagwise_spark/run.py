"""The analysis process: one Spark session, a round every interval, forecasts and maintenance of the lake in between."""

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lagwise.complaints import Complaints
from lagwise.config import Config
from lagwise.domain.humanise import plural
from lagwise.errors import LagwiseError, LakeError
from lagwise.health import ANALYSIS, Heart
from lagwise.logs import clean
from lagwise.program import program
from lagwise.tables import ALL_TABLES
from lagwise.tables.maintenance import maintain
from lagwise.tables.store import Lake
from lagwise_spark.jobs.capacity import plan
from lagwise_spark.jobs.demand import forecast_topics
from lagwise_spark.jobs.progress import News, read_news, read_progress
from lagwise_spark.jobs.tick import TickCost, tick
from lagwise_spark.session import start_session
from lagwise_spark.tuning import LARGE_BACKLOG, LARGE_GROUP_PARTITIONS

_LOG = logging.getLogger("lagwise.spark")

#: Topics become due for a forecast once an hour: where none was, they are looked through again so much later, …
_NONE_DUE_SECONDS = 300.0
#: … and where forecasts failed as a whole, so much.
_FORECASTS_FAILED_SECONDS = 3600.0
#: The same of capacity verdicts, which are made of small tables.
_NONE_TO_PLAN_SECONDS, _PLAN_FAILED_SECONDS = 60.0, 600.0


def open_lake(config: Config) -> Lake:
    """The lake of the settings, every table created."""
    lake = Lake(config.lake_uri, config.lake.resolved_storage_options())
    lake.create(*ALL_TABLES)
    return lake


def analyze_once(config: Config) -> TickCost:
    """Start Spark, do one round, stop. Raises LagwiseError where there is nothing to analyse or no way to."""
    lake = open_lake(config)
    session = _session(config, lake, read_news(lake, read_progress(lake)))
    try:
        cost = tick(session, lake, config)
        _forecast(session, lake, config)
        _plan(lake, config)
    except LagwiseError:
        raise
    except Exception as error:  # Spark's own errors run over hundreds of lines
        raise LagwiseError(f"the analysis failed: {_reason(error)}") from error
    finally:
        session.stop()
    if cost is None:
        raise LagwiseError(f"nothing has been collected yet: run `{program()} collect --once` first")
    return cost


def analyze_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """Do a round every ``analysis.interval_seconds`` until stopped.

    A round that fails costs only itself, and is done again after a while: the first of several says so in the log, and
    the one that succeeds after them. The lake is maintained between rounds, because this process is the only one that
    rewrites files.
    """
    heart = Heart(state, ANALYSIS)
    found = _first_look(config, stop, heart)
    if found is None:
        return
    lake, news = found
    heart.beat("starting Spark")
    session = _session(config, lake, news)
    heart.beat("Spark is up")
    failures = 0
    maintained_at = time.monotonic()
    forecast_from = plan_from = maintained_at
    try:
        while not stop.is_set():
            began = time.monotonic()
            try:
                cost = tick(session, lake, config)
                if failures:
                    _LOG.info("rounds succeed again, after %s that failed", failures)
                failures = 0
                heart.beat(line_of(cost))
                if time.monotonic() >= forecast_from:
                    forecast_from = time.monotonic() + _forecast(session, lake, config)
                if time.monotonic() >= plan_from:
                    plan_from = time.monotonic() + _plan(lake, config)
            except Exception as error:  # whatever a round dies of, the next one may succeed
                failures += 1
                reason = _reason(error)
                if failures == 1:
                    _LOG.error("the round failed and is tried again: %s", reason, exc_info=_trace_of(error))
                heart.beat(f"the last {'round' if failures == 1 else f'{failures} rounds'} failed: {reason}")
            if time.monotonic() - maintained_at >= config.lake.maintenance_interval_seconds and not stop.is_set():
                maintained_at = time.monotonic()
                _maintain(lake, config)
            pause = config.analysis.interval_seconds * min(8, 2 ** max(0, failures - 1))
            stop.wait(max(0.0, began + pause - time.monotonic()))
    finally:
        session.stop()


def _first_look(config: Config, stop: threading.Event, heart: Heart) -> tuple[Lake, list[News]] | None:
    """The lake and what is new in it, once it can be used; None where the end comes first."""
    complaints = Complaints(_LOG, remind_after_seconds=None)
    while not stop.is_set():
        try:
            lake = open_lake(config)
            news = read_news(lake, read_progress(lake))
        except LakeError as error:
            complaints.say("lake", f"{error}; nothing is analysed before it can be used", same="lake")
            heart.beat(str(error))
        else:
            complaints.clear("lake", "the lake can be used")
            return lake, news
        stop.wait(config.analysis.interval_seconds)
    return None


def _session(config: Config, lake: Lake, news: Sequence[News]) -> SparkSession:
    pairs = sum(n.group_partitions for n in news)
    waiting = sum(n.group_partitions * n.new_samples for n in news)
    return start_session(
        config.analysis.spark,
        lake_uri=lake.uri,
        storage_options=lake.storage_options,
        log_file=config.state / "logs" / "spark.log",
        thorough=pairs >= LARGE_GROUP_PARTITIONS or waiting >= LARGE_BACKLOG,
    )


def _forecast(session: SparkSession, lake: Lake, config: Config) -> float:
    """Forecast topics that are due; in how many seconds to look again. Whatever fails costs nobody's verdict."""
    began = time.monotonic()
    try:
        topics = forecast_topics(session, lake, config.analysis.forecast)
    except Exception as error:  # what a round has judged is written, whatever this dies of
        _LOG.error("forecasts failed and will be tried again in an hour: %s", _reason(error), exc_info=_trace_of(error))
        return _FORECASTS_FAILED_SECONDS
    if not topics:
        return _NONE_DUE_SECONDS
    _LOG.info("the demand for %s brought up to date in %.1f s", plural(topics, "topic"), time.monotonic() - began)
    return 0.0


def _plan(lake: Lake, config: Config) -> float:
    """Judge the capacity of groups that are due; in how many seconds to look again. Costs nobody's verdict either."""
    try:
        judged = plan(lake, config.analysis.capacity, datetime.now(UTC))
    except Exception as error:  # as above
        _LOG.error("capacity was not judged, again in ten minutes: %s", _reason(error), exc_info=_trace_of(error))
        return _PLAN_FAILED_SECONDS
    return 0.0 if judged else _NONE_TO_PLAN_SECONDS


def _maintain(lake: Lake, config: Config) -> None:
    try:
        done = maintain(lake, config.lake.retention)
        if done.compacted_files or done.deleted_days:
            _LOG.info("maintenance: %s", done)
    except LagwiseError as error:
        _LOG.error("maintenance failed and will be tried again: %s", error)


def _reason(error: Exception) -> str:
    """The first line of an error, shortened; of one that came from the JVM, that of its innermost cause."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    said = str(error) if cause is None else str(cause.toString())
    lines = said.strip().splitlines()
    return clean(lines[0])[:300] if lines else type(error).__name__


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
