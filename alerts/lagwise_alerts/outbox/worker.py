"""Stage 8, send: delivers the queued messages at least once, in order per channel, each channel in its own thread.

A message is sent, then marked. If the process is killed in between, the message is sent again with the same key, by
which the receiver recognises it. A receiver that does not answer delays only its own channel.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from sqlalchemy import Engine, select, update

from lagwise.config.operating import Grouping
from lagwise.operational.lease import Lease
from lagwise.platform.errors import DatabaseError, DatabaseGone
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise_alerts.channels import Channel, Message
from lagwise_alerts.channels.alertmanager import AlertmanagerChannel
from lagwise_alerts.notify.group import NextSend, SendSingly, SendSummary, Wait, next_send
from lagwise_alerts.outbox.database import DELIVERIES, transaction
from lagwise_alerts.outbox.resend_firing import FiringResender
from lagwise_alerts.outbox.retry import RetryPolicy, RetryStep, after_attempt
from lagwise_alerts.outbox.store import DEAD, DELIVERED, DELIVERY_COLUMNS, QUEUED, DeliveryRow
from lagwise_alerts.outbox.summaries import count_untried, queue_summaries, sent_recently

log = logging.getLogger("lagwise.alerts")

#: How many messages are read at a time.
_BATCH = 50
#: Another process may have queued messages: the queue is read at least this often.
_POLL_SECONDS = 15.0
#: How long the worker waits after a database error.
_PAUSE_SECONDS = 2.0


class Worker:
    """Delivers the messages of one channel."""

    def __init__(
        self,
        engine: Engine,
        channel: Channel[Any],
        *,
        clock: Callable[[], datetime],
        random: Random,
        policy: RetryPolicy | None = None,
        grouping: Grouping | None = None,
        lease: Lease | None = None,
    ) -> None:
        """``grouping`` says when many messages become one; None is never, for receivers that take single alerts only.
        Nothing is sent while this process does not hold ``lease``; None needs no lease."""
        self.channel = channel
        self.wake = threading.Event()
        self._engine = engine
        self._clock = clock
        self._random = random
        self._policy = policy or RetryPolicy()
        self._grouping = grouping or Grouping(max_messages=None)
        self._lease = lease
        self._log_throttle = LogThrottle(log)
        self._unrecorded: tuple[DeliveryRow, RetryStep] | None = None
        self._resender = FiringResender(engine, channel, clock) if isinstance(channel, AlertmanagerChannel) else None

    def deliver_due(self, stop: threading.Event) -> datetime | None:
        """Deliver in order until the queue is empty or the first message must wait. Returns until when it waits.

        Returns None where the queue is empty. Raises DatabaseError. A message that was sent but could not be marked is
        marked first at the next call.
        """
        self._record()
        while not stop.is_set():
            if not self._may_send():
                return self._clock() + timedelta(seconds=_PAUSE_SECONDS)
            queue = self._next_deliveries()
            if not queue:
                self._resend_firing()
                return None
            following = self._next_send()
            if isinstance(following, Wait):
                return following.until
            if isinstance(following, SendSummary):
                queue_summaries(self._engine, self.channel.name, self._clock(), self._lease)
                continue
            for payload, row in queue[: following.count]:
                if stop.is_set() or not self._may_send():
                    break
                if row.next_attempt_at > self._clock():
                    return row.next_attempt_at
                step = self._attempt_delivery(row, payload)
                self._unrecorded = (row, step)
                self._record()
                if step.state == QUEUED:
                    return step.next_attempt_at
        return self._clock()

    def run(self, stop: threading.Event) -> None:
        """Deliver until stopped. Setting ``wake`` announces new messages."""
        while not stop.is_set():
            self.wake.clear()
            try:
                due = self.deliver_due(stop)
                self._log_throttle.clear(
                    LogEvent.DATABASE_UNREACHABLE, f"channel {self.channel.name}: deliveries go on"
                )
                wait = _POLL_SECONDS if due is None else (due - self._clock()).total_seconds()
            except DatabaseGone:
                wait = _PAUSE_SECONDS  # the rounds use the same server, and log it once for all channels
            except DatabaseError as error:
                self._log_throttle.warn(
                    LogEvent.DATABASE_UNREACHABLE,
                    f"channel {self.channel.name}: {error}; deliveries wait",
                    code=error.code,
                )
                wait = _PAUSE_SECONDS
            except Exception:
                # A defect must not end the only thread of this channel: log it and try again.
                log.exception(
                    "channel %s: a defect in Lagwise, please report it",
                    self.channel.name,
                    extra=event(LogEvent.DEFECT, channel=self.channel.name),
                )
                wait = _POLL_SECONDS
            if not stop.is_set():
                self.wake.wait(min(max(wait, 0.0), _POLL_SECONDS))
        self.channel.close()

    def _may_send(self) -> bool:
        """Whether sending may begin: for TAKE_OVER_SECONDS − HOLD_SECONDS no other process can begin to send then."""
        return self._lease is None or self._lease.holds()

    def _next_send(self) -> NextSend:
        """How the next messages go out. A summary, or a message that was tried before, goes out in its place."""
        if self._grouping.max_messages is None:
            return SendSingly(_BATCH)
        waiting = count_untried(self._engine, self.channel.name)
        if waiting is None:
            return SendSingly(1)
        now, interval = self._clock(), self._grouping.interval_seconds
        sent = sent_recently(self._engine, self.channel.name, now, interval)
        return next_send(waiting, sent, self._grouping, now)

    def _next_deliveries(self) -> list[tuple[str, DeliveryRow]]:
        d = DELIVERIES.c
        query = (
            select(*DELIVERY_COLUMNS, d.payload)
            .where(d.state == QUEUED, d.channel == self.channel.name)
            .order_by(d.id)
            .limit(_BATCH)
        )
        with transaction(self._engine, read_only=True) as connection:
            rows = [dict(row._mapping) for row in connection.execute(query)]
        return [(row.pop("payload"), DeliveryRow(**row)) for row in rows]

    def _attempt_delivery(self, row: DeliveryRow, payload: str) -> RetryStep:
        before = self._resender.last_delivered(row.incident_id) if self._resender else None
        outcome = self.channel.send(Message(row.idempotency_key, payload, before))
        now = self._clock()
        step = after_attempt(outcome, row.attempts + 1, row.created_at, now, self._random, self._policy)
        where = f"channel {self.channel.name} ({self.channel.receiver})"
        if step.state == DELIVERED:
            self._log_throttle.clear(LogEvent.DELIVERY_FAILED, f"{where} accepts messages again")
        elif step.state == DEAD:
            log.error(
                "%s: %s of %s is a dead letter: %s",
                where,
                row.event,
                row.incident_id,
                step.error,
                extra=event(LogEvent.DEAD_LETTER, channel=self.channel.name),
            )
        else:
            wait = (step.next_attempt_at - now).total_seconds()
            line = f"{where}: {step.error}; its messages wait, next attempt in {wait:.0f} s"
            self._log_throttle.warn(LogEvent.DELIVERY_FAILED, line, same=step.error)
        return step

    def _resend_firing(self) -> None:
        outcome = self._resender.resend_if_due() if self._resender else None
        if outcome is not None and outcome.error is not None:
            where = f"channel {self.channel.name} ({self.channel.receiver})"
            line = f"{where}: {outcome.error}; firing alerts are sent again later"
            self._log_throttle.warn(LogEvent.RESEND_FAILED, line, same=outcome.error)
        elif outcome is not None:
            self._log_throttle.clear(
                LogEvent.RESEND_FAILED, f"channel {self.channel.name}: firing alerts are repeated again"
            )

    def _record(self) -> None:
        if self._unrecorded is None:
            return
        row, step = self._unrecorded
        values = {
            "state": step.state,
            "attempts": row.attempts + 1,
            "next_attempt_at": step.next_attempt_at,
            "last_error": step.error,
            "delivered_at": self._clock() if step.state == DELIVERED else None,
        }
        # If another process on this database has delivered the message, or given it up, that stays.
        mark = update(DELIVERIES).where(DELIVERIES.c.id == row.id, DELIVERIES.c.state == QUEUED)
        with transaction(self._engine) as connection:
            connection.execute(mark.values(**values))
        self._unrecorded = None


class Outbox:
    """One worker and one thread per channel."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._stop = threading.Event()
        self._workers = workers
        # Daemon threads: a receiver that does not answer must not keep the process from ending. The next process sends
        # again what the receiver may have got.
        self._threads = [
            threading.Thread(target=w.run, args=(self._stop,), name=f"channel {w.channel.name}", daemon=True)
            for w in workers
        ]

    def start(self) -> None:
        """Start delivering."""
        for thread in self._threads:
            thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether every channel still has its thread."""
        return all(thread.is_alive() for thread in self._threads)

    def wake(self) -> None:
        """Announce new messages."""
        for worker in self._workers:
            worker.wake.set()

    def stop(self, within_seconds: float) -> None:
        """Stop delivering. An attempt that is under way may take this long."""
        self._stop.set()
        self.wake()
        for thread in self._threads:
            thread.join(within_seconds / max(1, len(self._threads)))
