"""Upgrades that kill themselves, for the test of that. Not a test.

Reads commands from stdin, one JSON object a line, and for each forks a child that upgrades the folder ``data`` and
kills itself (SIGKILL) at the numbered point: before a statement that writes, before a commit of the database, before
and after a commit of a table. Leases last so many ``times`` what they do. Answers with one JSON object: the points
that were ``passed``, and whether it was ``killed`` at the last of them. Nothing of delta-rs runs before the fork,
because its threads would not survive it.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import deltalake  # imported once, here, instead of once in every child
from sqlalchemy import Connection, Engine, event

from lagwise.config import Config
from lagwise.operational import lease
from lagwise_app.upgrade import upgrade

_STATEMENTS = ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")
#: The functions of delta-rs that make a commit.
_COMMITS = {"create_deltalake", "create_write_transaction", "add_columns", "set_table_properties"}
assert deltalake.__version__


class Executioner:
    """Counts points, and kills this process at the chosen one."""

    def __init__(self, point: int, said: Path) -> None:
        self.passed: list[str] = []
        self._point, self._said = point, said

    def pass_point(self, what: str) -> None:
        self.passed.append(what)
        if len(self.passed) == self._point:
            self.say()
            os.kill(os.getpid(), signal.SIGKILL)

    def say(self) -> None:
        self._said.write_text(json.dumps(self.passed), encoding="utf-8")

    def statement(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        words = statement.split()
        if words[0].upper() in _STATEMENTS:
            self.pass_point(f"the statement {' '.join(words[:3])}")

    def commit(self, connection: Connection) -> None:
        if not connection.get_execution_options().get("lagwise_read_only"):
            self.pass_point("a commit of the database")

    def call(self, _frame: object, kind: str, function: Any) -> None:
        if kind in ("c_call", "c_return") and function.__name__ in _COMMITS:
            self.pass_point(f"{'before' if kind == 'c_call' else 'after'} {function.__name__}")

    def watch(self) -> None:
        event.listen(Engine, "before_cursor_execute", self.statement)
        event.listen(Engine, "commit", self.commit)
        sys.setprofile(self.call)


def one_upgrade(command: dict[str, Any], said: Path) -> None:
    for name in ("RENEW_SECONDS", "HOLD_SECONDS", "TAKE_OVER_SECONDS"):
        setattr(lease, name, getattr(lease, name) * command["times"])
    executioner = Executioner(command["point"], said)
    executioner.watch()
    upgrade(Config.model_validate({"data": command["data"]}), lambda _line: None)
    sys.setprofile(None)
    executioner.say()


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        said = Path(command["data"]) / "said"
        child = os.fork()
        if child == 0:
            one_upgrade(command, said)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if status and not is_killed:
            sys.exit(f"an upgrade failed with {status}")
        answer = {"passed": json.loads(said.read_text(encoding="utf-8")), "killed": is_killed}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
