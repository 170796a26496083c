"""Processes for other tests to kill. Not a test.

``forever CONFIG TIMES`` is the alert process, whose leases last so many times what they do. ``forks`` reads commands
from stdin, one JSON object a line, and for each forks a child that does one round and kills itself (SIGKILL) at the
numbered point: before a statement that writes (``makes_tables``: or makes a table), before a commit, before and after a
request to a receiver. It answers with one line: "killed" or "done".
"""

import importlib.util
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from lagwise.config import Config, load_config
from lagwise.operational import lease
from lagwise.platform import logs
from lagwise_alerts.channels.webhook import WebhookChannel
from lagwise_alerts.run import alert_forever, alert_once


class Executioner:
    """Counts points, and kills this process at the chosen one."""

    def __init__(self, point: int, makes_tables: bool) -> None:
        self._left = point
        self._writes = ("INSERT", "UPDATE", "DELETE", *(["CREATE"] if makes_tables else []))
        self._lock = threading.Lock()

    def pass_point(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def statement(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.split()[0].upper() in self._writes:
            self.pass_point()

    def commit(self, connection: Connection) -> None:
        if not connection.get_execution_options().get("lagwise_read_only"):
            self.pass_point()

    def watch(self) -> None:
        event.listen(Engine, "before_cursor_execute", self.statement)
        event.listen(Engine, "commit", self.commit)
        send: Callable[..., Any] = WebhookChannel.send

        def watched(channel: WebhookChannel, message: Any) -> Any:
            self.pass_point()
            outcome = send(channel, message)
            self.pass_point()
            return outcome

        WebhookChannel.send = watched  # type: ignore[assignment,method-assign]  # the real one is called, between two points


def one_round(command: dict[str, Any]) -> None:
    Executioner(command["point"], command["makes_tables"]).watch()
    alert_once(load_config(Path(command["config"]), environment={}), datetime.fromisoformat(command["now"]))


#: Imported by libraries at their first use: once here instead of once in every child.
LAZY = ("pandas", "pytz", "httpcore", "h11", "sqlite3", "_strptime", "encodings.idna", "sqlalchemy.dialects.sqlite")


def forks() -> None:
    for name in LAZY:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    Config()  # pydantic completes a model at its first use, too
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            one_round(json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            answer = "killed"
        else:
            answer = "done" if status == 0 else f"failed with {status}"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "forks":
        forks()
    else:
        loaded, stop = load_config(Path(sys.argv[2]), environment={}), threading.Event()
        for name in ("RENEW_SECONDS", "HOLD_SECONDS", "TAKE_OVER_SECONDS"):
            setattr(lease, name, getattr(lease, name) * float(sys.argv[3]))
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        logs.configure("alerts")
        alert_forever(loaded, stop, loaded.state)
