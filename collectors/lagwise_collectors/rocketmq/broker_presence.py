"""Which brokers the name servers list, and which they listed until lately: a broker that is gone may be down."""

import json
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lagwise.domain.cluster_findings import BROKER, GONE_FOR_GOOD
from lagwise.platform.files import BestEffortFile
from lagwise_collectors.rocketmq.broker_retention import BrokerStatusReader

log = logging.getLogger("lagwise.collectors.rocketmq")

#: While nothing changes, the file is as old as this at most.
_SAVE_EVERY = timedelta(minutes=1)


class BrokerPresence:
    """When each broker was last listed. ``file`` keeps that for the next process; without one it is forgotten."""

    def __init__(self, file: Path | None) -> None:
        self._file = (
            None if file is None else BestEffortFile(file, log, "after a restart, brokers that are gone are forgotten")
        )
        self._listed = {} if file is None else _saved(file)
        self._here: frozenset[str] = frozenset()
        self._saved_at: datetime | None = None

    def see(self, listed: Iterable[str], now: datetime) -> None:
        """These brokers are listed now."""
        before, self._here = set(self._listed), frozenset(listed)
        self._listed |= dict.fromkeys(self._here, now)
        self._listed = {name: at for name, at in self._listed.items() if now - at < GONE_FOR_GOOD}
        is_due = self._saved_at is None or now - self._saved_at >= _SAVE_EVERY
        if self._file is not None and (is_due or before != set(self._listed)):
            self._saved_at = now
            seconds = {name: at.timestamp() for name, at in self._listed.items()}
            self._file.write(json.dumps(seconds).encode())

    def rows(self, brokers: BrokerStatusReader) -> list[dict[str, Any]]:
        """The ``brokers`` of a sample: those that are listed, and those that lately were."""
        rows: list[dict[str, Any]] = []
        for name, at in sorted(self._listed.items()):
            if name in self._here:
                state = brokers.of(name).state
                rows.append({"name": name, "role": BROKER, "disk_used": state.disk_used})
                rows[-1]["clock_ahead_seconds"] = state.clock_ahead_seconds
            else:
                rows.append({"name": name, "role": BROKER, "gone_at": at})
        return rows


def _saved(file: Path) -> dict[str, datetime]:
    """What the file holds; nothing where it cannot be read: only brokers that left while nobody looked are missed."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): datetime.fromtimestamp(float(at), UTC) for name, at in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError):
        return {}
