"""The alert process: each round reads the lake, decides, stores and delivers. An error stops only its own step."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from lagwise.config import Config
from lagwise.domain.humanise import duration
from lagwise.operational.heartbeats import beating
from lagwise.operational.leadership import Leadership, NotLeader
from lagwise.operational.lease import Lease
from lagwise.platform import health
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError, DatabaseError, DatabaseGone
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise.tables.store import Lake
from lagwise_alerts.channels import TAKE_SUMMARIES, make_channel
from lagwise_alerts.dead_mans_switch import DeadMansSwitch, ping, self_check
from lagwise_alerts.evaluate.lake_reader import LakeReader
from lagwise_alerts.evaluate.observation import observe
from lagwise_alerts.evaluate.unread_ages import objectives_of
from lagwise_alerts.model import AlertEvent, Decision, Situation
from lagwise_alerts.notify.message import render
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox import store
from lagwise_alerts.outbox.database import create_tables, open_engine
from lagwise_alerts.outbox.worker import Outbox, Worker
from lagwise_alerts.rules.reload import RuleFileWatch
from lagwise_alerts.rules.rule_file import RuleBook
from lagwise_alerts.stages import decide_and_mute

log = logging.getLogger("lagwise.alerts")

_PRUNE_EVERY = timedelta(hours=1)
#: Lagwise must end within 10 s of a signal; an attempt that is under way gets this much of it.
_STOP_WITHIN_SECONDS = 3.0
_STOP_SWITCH_WITHIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AlertRound:
    """What a round did."""

    #: How many notifications of each kind were queued.
    events: Mapping[AlertEvent, int]
    counts: queries.AlertCounts
    #: Why alerts stayed as they were, one line each.
    trouble: tuple[str, ...] = ()
    #: Why Lagwise cannot be relied on at the moment; None where it can. Checked only with a dead man's switch.
    self_check: str | None = None
    #: What is wrong with the file of rules.
    rules_trouble: str | None = None

    @property
    def line(self) -> str:
        """The round in one line, for the heartbeat."""
        c = self.counts
        text = f"{c.firing} firing, {c.pending} pending; {c.delivered} delivered, {c.queued} queued"
        if c.dead:
            text += f", {c.dead} dead"
        trouble = self.trouble if self.rules_trouble is None else (*self.trouble, self.rules_trouble)
        return "; ".join((text, *trouble))


class AlertProcess:
    """Everything a round needs, opened once. Raises ConfigError where the settings or the rules are invalid."""

    def __init__(self, config: Config, *, watching_since: datetime | None) -> None:
        self._config = config
        self._rules = RuleFileWatch(config.alerts.rules_file, [channel.name for channel in config.alerts.channels])
        self.engine = open_engine(config.database_url)
        self.leadership = Leadership(Lease(self.engine, "alerts"), "the alerts", log, logs_trouble=False)
        self._reader = LakeReader(
            Lake(config.lake_uri, config.lake.resolved_storage_options()),
            objectives_of(config),
            config.analysis.interval_seconds,
        )
        self._watching_since = watching_since
        self._active: set[str] = set()
        self._prepared = False
        self._pruned_at: datetime | None = None

    def round(self, now: datetime) -> AlertRound:
        """Read, decide and store. Alerts stay as they are where the lake is unreadable.

        Raises DatabaseError, having stored nothing.
        """
        self.open_database()
        if self._rules.refresh():
            log.info(
                "the rules have changed: %d rules are in force",
                len(self.book.rules),
                extra=event(LogEvent.RULES_CHANGED),
            )
        snapshot = self._reader.read(now)
        alive = {row.subject for row in snapshot.groups if row.is_active}
        situation = observe(
            snapshot,
            clusters=[cluster.name for cluster in self._config.clusters],
            analysis_interval_seconds=self._config.analysis.interval_seconds,
            active=self._active,
            watching_since=self._watching_since,
            now=now,
        )
        decision = store.decide_and_queue(
            self.engine,
            lambda alerts, ended, mute_state: decide_and_mute(self.book, situation, alerts, ended, mute_state, now),
            lambda notification: render(notification, self._config),
            active=[subject for subject in alive if subject.fingerprint not in self._active],
            windows=self._config.alerts.maintenance,
            now=now,
            remember=timedelta(seconds=self.book.flapping.within if self.book.flapping else 0.0),
            lease=self.leadership.lease,
        )
        self._active.update(subject.fingerprint for subject in alive)
        self._prune(now)
        return replace(self._report(decision, snapshot.trouble), self_check=self._self_check(situation, now))

    def _self_check(self, situation: Situation, now: datetime) -> str | None:
        if self._config.alerts.heartbeat is None:
            return None
        states = queries.channel_states(self.engine, [channel.name for channel in self._config.alerts.channels])
        return self_check(situation, states, now, summary_seconds=self._config.alerts.grouping.interval_seconds)

    @property
    def book(self) -> RuleBook:
        """The rules in force."""
        return self._rules.book

    def open_database(self) -> None:
        """Open the database, once it can be opened. Raises DatabaseError."""
        if not self._prepared:
            create_tables(self.engine)
            self._active = set(queries.active_groups(self.engine))
            self._prepared = True

    def close(self) -> None:
        """Close the lake and the database."""
        self._reader.close()
        self.engine.dispose()

    def _report(self, decision: Decision, trouble: tuple[str, ...]) -> AlertRound:
        return AlertRound(
            events=Counter(notification.event for notification in decision.notifications),
            counts=queries.counts(self.engine),
            trouble=trouble,
            rules_trouble=self._rules.trouble,
        )

    def _prune(self, now: datetime) -> None:
        if self._pruned_at is None or now - self._pruned_at >= _PRUNE_EVERY:
            store.prune(self.engine, now - timedelta(days=self._config.lake.retention.history_days))
            self._pruned_at = now


def alert_once(config: Config, now: datetime | None = None) -> AlertRound:
    """One round, and one attempt to deliver everything that is due: for a scheduler, for tests, and by hand.

    Raises ConfigError, DatabaseError, and NotLeader where another process runs the alerts of this database. ``now`` is
    the present time unless given.
    """
    at = now or _now()
    alerts = AlertProcess(config, watching_since=None)
    try:
        alerts.open_database()  # the lease is in the database
        with alerts.leadership.taken():
            report = alerts.round(at)
            workers = _workers(alerts, config, _now if now is None else lambda: at)
            if workers:
                with ThreadPoolExecutor(len(workers)) as pool:
                    for done in [pool.submit(_deliver_once, worker) for worker in workers]:
                        done.result()
            if config.alerts.heartbeat is not None and report.self_check is None:
                error = ping(config.alerts.heartbeat)
                if error is not None:
                    log.warning("the heartbeat failed (%s)", error, extra=event(LogEvent.HEARTBEAT_FAILED))
            return replace(report, counts=queries.counts(alerts.engine))
    finally:
        alerts.close()


def alert_forever(config: Config, stop: threading.Event, state: Path) -> None:
    """Rounds at the configured interval until ``stop`` is set, with deliveries in threads and heartbeats in ``state``.

    While another process runs the alerts of this database, this one waits, and takes over when that one is gone. Raises
    ConfigError at the start where the settings or the rules are invalid; nothing else ends it.
    """
    with beating(state, health.ALERTS, config.database_url) as heart:
        _alert(config, stop, heart)


def _alert(config: Config, stop: threading.Event, heart: health.Heart) -> None:
    alerts = AlertProcess(config, watching_since=_now())
    workers = _workers(alerts, config, _now)
    outbox = Outbox(workers)
    heartbeat = config.alerts.heartbeat
    switch = DeadMansSwitch(heartbeat, config.alerts.interval_seconds) if heartbeat else None
    log_throttle = LogThrottle(log)
    where = ", ".join(f"{w.channel.name} ({w.channel.receiver})" for w in workers)
    log.info(
        "%d rules; channels: %s",
        len(alerts.book.rules),
        where or "none, alerts are stored and shown only",
        extra=event(LogEvent.STARTED),
    )
    _log_unusable(workers)
    started = False
    leadership = alerts.leadership
    leadership.start()
    try:
        while not stop.is_set():
            waits_for = None
            try:
                if leadership.lease.trouble is not None:
                    leadership.ask()
                reason = leadership.why_not()
                if not leadership.lease.holds() and leadership.lease.trouble is not None:
                    raise leadership.lease.trouble
                if reason is not None:
                    raise NotLeader(reason)
                report = alerts.round(_now())
                log_throttle.clear(LogEvent.DATABASE_UNREACHABLE, "the database works again")
                if report.trouble:
                    log_throttle.warn(
                        LogEvent.LAKE_UNREADABLE,
                        "; ".join(report.trouble) + "; alerts that depend on it stay as they are",
                    )
                else:
                    log_throttle.clear(LogEvent.LAKE_UNREADABLE, "the lake can be read again")
                if report.rules_trouble is not None:
                    log_throttle.warn(LogEvent.RULES_INVALID, report.rules_trouble, code=ErrorCode.ALERT_RULES_INVALID)
                else:
                    log_throttle.clear(LogEvent.RULES_INVALID, "the file of rules is valid again")
                if not started:
                    _log_orphans(alerts, {w.channel.name for w in workers})
                    outbox.start()
                    if switch is not None:
                        switch.start()
                    started = True
                outbox.wake()
                if switch is not None:
                    switch.update(report.self_check if outbox.is_alive else "a channel's thread has ended")
                line = report.line
            except NotLeader as error:
                log_throttle.clear(LogEvent.DATABASE_UNREACHABLE, "the database works again")
                if switch is not None and started:
                    switch.update(str(error))
                line = f"{error}; this process waits"
                waits_for = leadership.lease.holder
            except DatabaseError as error:
                line = str(error)
                same = "gone" if isinstance(error, DatabaseGone) else line
                log_throttle.warn(
                    LogEvent.DATABASE_UNREACHABLE,
                    f"{line}; nothing is decided until it works",
                    same=same,
                    code=error.code,
                )
            heart.beat(line, unless_by=None if waits_for is None else waits_for.process.pid_here)
            stop.wait(config.alerts.interval_seconds)
    finally:
        if started:
            if switch is not None:
                switch.stop(_STOP_SWITCH_WITHIN_SECONDS)
            outbox.stop(_STOP_WITHIN_SECONDS)
        leadership.stop()
        alerts.close()


def _workers(alerts: AlertProcess, config: Config, clock: Callable[[], datetime]) -> list[Worker]:
    return [
        Worker(
            alerts.engine,
            make_channel(channel, clock),
            clock=clock,
            random=Random(),  # noqa: S311 (spreads attempts in time, guards nothing)
            grouping=config.alerts.grouping if channel.type in TAKE_SUMMARIES else None,
            lease=alerts.leadership.lease,
        )
        for channel in config.alerts.channels
    ]


def _deliver_once(worker: Worker) -> None:
    try:
        worker.deliver_due(threading.Event())
    finally:
        worker.channel.close()


def _log_unusable(workers: list[Worker]) -> None:
    """Log what is wrong with a channel before anything is sent."""
    for worker in workers:
        try:
            worker.channel.check()
        except ConfigError as error:
            log.warning(
                "channel %s does not work: %s; its messages wait",
                worker.channel.name,
                error,
                extra=event(LogEvent.CHANNEL_UNUSABLE, channel=worker.channel.name),
            )


def _log_orphans(alerts: AlertProcess, channels: set[str]) -> None:
    """Log once where messages wait for a channel that was removed from the settings."""
    for name, oldest in queries.waiting_channels(alerts.engine).items():
        if name not in channels:
            age = duration(round((_now() - oldest).total_seconds()))
            log.warning(
                "messages for channel %s have waited for %s, but the settings have no such channel",
                name,
                age,
                extra=event(LogEvent.CHANNEL_UNUSABLE, channel=name),
            )


def _now() -> datetime:
    return datetime.now(UTC)
